"""What several commands share: options, sources of answers, output and messages."""
