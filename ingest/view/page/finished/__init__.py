"""Pages whose pictures are all made in advance: compare, trend, means."""
