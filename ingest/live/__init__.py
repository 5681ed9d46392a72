"""What goes on while data come in: runs that grow, and a page that keeps up with them."""
