"""Kibana: kibana/dashboards/*.yml compiled to saved objects, checked, and sent.

    kibana/dashboards/*.yml -> config -> vega_panels | lens_panels -> dashboards -> saved_objects -> tailboard.ndjson -> importing

What is compiled is pure: the same words give the same bytes. `asked` shows what a panel asks the server for, so that the rules of
`lint`, the tests and the benchmarks see the requests that Kibana would send.
"""
