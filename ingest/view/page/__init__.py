"""Pages of HTML that hold all they need: the report, those of compare and trend, and their sections and scripts."""
