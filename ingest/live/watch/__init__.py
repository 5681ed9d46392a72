"""Runs that are loaded while they grow: the cycle, the files, the windows held until they are whole, the end."""
