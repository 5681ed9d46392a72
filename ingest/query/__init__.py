"""Questions and their answers: one file a question."""
