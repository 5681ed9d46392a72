"""The page of a report: what it is asked for, what it holds, and its numbers packed."""
