"""Rules for saved objects: one function a rule, each with a tiny bad example in tests/view/kibana/bad/.

tailboard-cluster-latency-p99: scope-and-step: latency.p99 is not limited to one scope
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tools.kibana.lint.budget import budget
from tools.kibana.lint.counting import document_count, operation, t_digest
from tools.kibana.lint.filtered import filters
from tools.kibana.lint.objects import Objects, Problem, read_files
from tools.kibana.lint.placing import file_name, grid, references
from tools.kibana.lint.reading import fields, kinds, scope_and_step
from tools.kibana.lint.specs import external_url, vega

RULES: Mapping[str, Callable[[Objects], Iterable[Problem]]] = {
    "file-name": file_name,
    "references": references,
    "grid": grid,
    "operation": operation,
    "field": fields,
    "scope-and-step": scope_and_step,
    "kinds": kinds,
    "document-count": document_count,
    "t-digest": t_digest,
    "budget": budget,
    "filters": filters,
    "vega": vega,
    "external-url": external_url,
}


def problems(files: Mapping[str, str]) -> list[str]:
    """Return a line for each problem of the objects in saved_objects/: its id, the rule, what is wrong."""
    objects = read_files(files)
    return [f"{identity}: {name}: {message}" for name, rule in RULES.items() for identity, message in rule(objects)]
