"""Chrome trace events: objects of a file that may be broken off, and the operations that they record."""
