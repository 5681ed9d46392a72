"""Parameters of each endpoint: those the double obeys (or may ignore since they change no answer), and those it refuses.

The refused ones are the rest of what the Python clients 8.19.3 and 9.5.1 can send. Anything else is unknown to a server, which
answers 400 "contains unrecognized parameter".
"""

from __future__ import annotations

from tests.doubles.elasticsearch.errors import CannotDo, illegal

EVERYWHERE = {"filter_path", "pretty"}
TIMES = {"master_timeout", "timeout"}
CHOICE = {"ignore_unavailable", "allow_no_indices", "expand_wildcards"}
SOURCE = {"_source", "_source_includes", "_source_excludes"}
OBEYED: dict[str, set[str]] = {
    "info": set(),
    "health": {*TIMES, "wait_for_status", "wait_for_no_initializing_shards", "wait_for_no_relocating_shards", "local"},
    "put_component": {"create", "cause", "master_timeout", "timeout"},
    "get_component": {"local", "master_timeout"},
    "delete_component": TIMES,
    "put_index_template": {"create", "cause", "master_timeout", "timeout"},
    "get_index_template": {"local", "master_timeout"},
    "delete_index_template": TIMES,
    "simulate": {"master_timeout"},
    "bulk": {"refresh", "timeout", "require_alias", "wait_for_active_shards", "include_source_on_error"},
    "get_mapping": {*CHOICE, "local", "master_timeout"},
    "put_mapping": {*CHOICE, *TIMES},
    "get_settings": {*CHOICE, "flat_settings", "local", "master_timeout"},
    "put_settings": {*CHOICE, *TIMES, "flat_settings"},
    "search": {
        *CHOICE, *SOURCE, "allow_partial_search_results", "batched_reduce_size", "ccs_minimize_roundtrips", "max_concurrent_shard_requests",
        "pre_filter_shard_size", "preference", "request_cache", "track_total_hits", "size", "from", "version", "seq_no_primary_term",
    },
    "count": {*CHOICE, "preference"},
    "msearch": {*CHOICE, "max_concurrent_searches", "max_concurrent_shard_requests", "ccs_minimize_roundtrips"},
    "mget": {*SOURCE, "preference", "realtime"},
    "get": {*SOURCE, "preference", "realtime"},
    "write": {"refresh", "timeout", "if_seq_no", "if_primary_term", "version", "version_type", "op_type", "require_alias",
        "wait_for_active_shards", "include_source_on_error"},
    "update": {"refresh", "timeout", "wait_for_active_shards", "retry_on_conflict"},
    "refresh": CHOICE,
    "close": CHOICE,
    "open": CHOICE,
    "create_index": {*TIMES, "wait_for_active_shards"},
    "delete_index": {*CHOICE, *TIMES},
    "get_index": {*CHOICE, "flat_settings", "local", "master_timeout"},
    "open_pit": {*CHOICE, "keep_alive", "preference", "max_concurrent_shard_requests"},
    "close_pit": set(),
    "resolve": CHOICE,
    "cat_indices": {"format", "h", "s", "bytes", "master_timeout", "expand_wildcards", "v"},
    "stats": {"level", "expand_wildcards", "forbid_closed_indices"},
    "cluster_settings": {"include_defaults", "flat_settings", "master_timeout", "timeout"},
    "nodes_stats": {"timeout"},
    "has_privileges": set(),
    "esql": {"format", "allow_partial_results"},
}  # fmt: skip
REFUSED: dict[str, str] = {
    "info": "",
    "health": "expand_wildcards level wait_for_active_shards wait_for_events wait_for_nodes",
    "get_component": "flat_settings include_defaults settings_filter",
    "get_index_template": "flat_settings include_defaults",
    "simulate": "cause create include_defaults",
    "bulk": "_slice _source _source_excludes _source_includes list_executed_pipelines pipeline require_data_stream routing",
    "put_mapping": "write_index_only",
    "get_settings": "include_defaults",
    "put_settings": "preserve_existing reopen",
    "search": "_slice _source_exclude_vectors analyze_wildcard analyzer default_operator df force_synthetic_source ignore_throttled "
    "include_named_queries_score lenient min_compatible_shard_node q rest_total_hits_as_int routing scroll search_type sort stats "
    "stored_fields suggest_field suggest_mode suggest_size suggest_text terminate_after timeout track_scores typed_keys explain "
    "docvalue_fields fields search_after",
    "count": "_slice analyze_wildcard analyzer default_operator df ignore_throttled lenient min_score q routing stats terminate_after",
    "msearch": "_slice ignore_throttled include_named_queries_score pre_filter_shard_size project_routing "
    "rest_total_hits_as_int routing search_type typed_keys",
    "mget": "_slice force_synthetic_source refresh routing stored_fields",
    "get": "_slice _source_exclude_vectors force_synthetic_source refresh routing stored_fields version version_type",
    "write": "_slice pipeline require_data_stream routing",
    "update": "_slice _source _source_excludes _source_includes if_primary_term if_seq_no include_source_on_error lang require_alias routing",
    "get_index": "features include_defaults",
    "open_pit": "allow_partial_search_results routing",
    "resolve": "mode",
    "cat_indices": "health help include_unloaded_segments pri time",
    "stats": "completion_fields fielddata_fields fields groups include_segment_file_sizes include_unloaded_segments",
    "esql": "delimiter drop_null_columns",
}
ALWAYS_REFUSED = {"error_trace", "human", "format", "source", "source_content_type"}


def check(group: str, path: str, given: dict[str, str]) -> None:
    """Refuse parameters that the double does not obey, or that no server knows."""
    obeyed = OBEYED[group] | EVERYWHERE
    for name, value in given.items():
        if name in obeyed:
            _check_value(name, value)
        elif name in ALWAYS_REFUSED or name in REFUSED.get(group, "").split():
            raise CannotDo(f"parameter [{name}] of {path}")
        else:
            raise illegal(f"request [{path}] contains unrecognized parameter: [{name}]")


def _check_value(name: str, value: str) -> None:
    if name == "expand_wildcards" and not {"open", "all"} & set(value.split(",")):
        raise CannotDo(f"expand_wildcards [{value}]")
    if name == "wait_for_active_shards" and value not in ("0", "1"):
        raise CannotDo(f"wait_for_active_shards [{value}]")
    if name == "realtime" and value == "false":
        raise CannotDo("realtime=false")
    if name == "level" and value != "indices":
        raise CannotDo(f"level [{value}]")


def flag(given: dict[str, str], name: str, default: bool = False) -> bool:
    """Return a parameter that is true or false."""
    value = given.get(name)
    if value is None:
        return default
    if value not in ("", "true", "false"):
        raise illegal(f"Failed to parse value [{value}] as only [true] or [false] are allowed.")
    return value != "false"
