"""An Elasticsearch server for tests: README.md beside this file says what it does, what of it is proven, and by what."""

from tests.doubles.elasticsearch.server import ElasticsearchDouble

__all__ = ["ElasticsearchDouble"]
