"""Kibana: the saved objects of kibana/tailboard.ndjson sent to a server, and alert rules made of objectives.

`tools/kibana/` of a checkout makes that file of kibana/dashboards/*.yml.
"""
