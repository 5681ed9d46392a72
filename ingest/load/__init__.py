"""Files into a store: the plan of a load, and the load."""
