"""Readers of other tools, one module or package each, registered in `ingest.read.formats` as any further one would be."""
