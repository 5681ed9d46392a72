"""Files of any tool, read as a YAML description says: single operations and histograms."""
