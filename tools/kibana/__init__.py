"""The saved objects of Kibana: made of kibana/dashboards/*.yml, and checked. `ingest/view/kibana/` sends them.

    kibana/dashboards/*.yml -> config -> vega_panels | lens_panels -> dashboards -> compile -> kibana/tailboard.ndjson

What is compiled is pure: the same words give the same bytes. `asked` shows what a panel asks the server for, so that the rules of
`lint`, the tests and the benchmarks see the requests that Kibana would send.
"""
