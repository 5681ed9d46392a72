"""What several commands share: options, where answers come from, how they are written and what is said."""
