"""Runs that are loaded while they grow: the cycle, the files, what is held until it is whole, the end."""
