"""An Elasticsearch server for tests: HTTP on a socket of 127.0.0.1, in this process, of version 9.x or 8.x.

    with ElasticsearchDouble(version="9.5.3") as server:
        client = elasticsearch.Elasticsearch(server.url)
        ...
        assert server.refusals == []

What it cannot do it refuses with 501 `double_cannot_do_this` and remembers in `server.refusals`: never a guess, never a parameter
left out of account. What a server refuses, it refuses with the server's status, error type and reason.

**Proven on recordings** of real nodes (tests/data/elasticsearch, replayed in tests/doubles/elasticsearch_proofs): both whole
conversations, 9.5.3 and 8.19.21; of the single exchanges on 9.5.3 the histogram parser (36 cases, strict and ignore_malformed),
the dynamic range of HDR, its ranks for few samples, writes, templates, what searches are refused for, a failing shard, 413, both
forms of 429, `_doc_count`. That covers templates and auto-creation, _bulk, versions, GET and _mget, hdr percentiles and ranks
(to the last digit), range and histogram on histogram fields, date_histogram with gaps and bounds, terms, composite, metrics,
points in time with `_shard_doc`, blocks, _count, _refresh, _mapping, _settings, _resolve, _cat/indices, _stats, one ES|QL query. And
702 requests of the product itself on 9.5.3, from `setup` to `delete`. The order of keys is the server's, too (`key_order`).

**From the documentation, and from what servers are known to do, not recorded:** security (401, 403 and their wording; the nodes ran
without it), `_delete_by_query` (module reindex; without it the recorded refusal), `_msearch`, `top_hits`, `wildcard` and `prefix`, `missing_bucket`,
`external` versions and tombstones, indices of several shards (routing of documents, `_shard_doc` across shards),
when a refresh interval makes writes visible (ticks from the shard's creation; search idling is left out), expiry of points in time,
date rounding in ranges, ES|QL beyond the recorded query, gzip, `POST _resolve/index`, limits of `meta`.

**Not like a server:** sums are exactly rounded (a server adds with compensation: the same for whole nanoseconds); cardinality is
exact, and refused beyond its precision threshold; terms over several shards are refused where a server's counts would be
approximate; sizes in _stats and _cat are bytes of sources; a status that one node never reaches times out at once; nothing is merged,
so a document's place in its shard is the number of writes before it. Not emulated: t-digest, scores that vary, aliases, data
streams, ILM, pipelines, routing, scripts, text search.
"""

from tests.doubles.elasticsearch.server import ElasticsearchDouble

__all__ = ["ElasticsearchDouble"]
