"""The report as a live page: what is asked, one answer for all who ask, the server."""
