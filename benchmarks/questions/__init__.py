"""One file a family of questions, each a function that measures and prints."""
