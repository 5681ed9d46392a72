"""The panels that only some runs have: of each its data, its HTML and its script."""
