"""What averaging would have said, beside the exact numbers."""
