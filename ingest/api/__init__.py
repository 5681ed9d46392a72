"""What the command line and Python have in common: the words of a call become sources and questions here, once for both."""
