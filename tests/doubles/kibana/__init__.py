"""A Kibana server for tests: README.md beside this file says what it does, and what it follows."""

from tests.doubles.kibana.server import KibanaDouble

__all__ = ["KibanaDouble"]
