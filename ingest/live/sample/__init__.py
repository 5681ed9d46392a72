"""Commands that are asked on a clock: `tailboard sample`."""
