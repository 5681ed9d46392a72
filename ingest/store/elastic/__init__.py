"""The scale-out store, Elasticsearch. One room each: connection, names, templates, encoding, bulk, records, rollups, holdings."""
