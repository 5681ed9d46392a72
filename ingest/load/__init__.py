"""Files into a store: what is planned, and what is written."""
