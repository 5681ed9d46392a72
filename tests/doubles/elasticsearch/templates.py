"""Component and index templates: checked as the server checks them, composed when an index is created."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.doubles.elasticsearch import mapping
from tests.doubles.elasticsearch.errors import CannotDo, Refusal, illegal, refuse
from tests.doubles.elasticsearch.key_order import hashed
from tests.doubles.elasticsearch.settings import checked, flat, nested

Json = Any
COMPONENT_KEYS = ("template", "version", "_meta")  # these in the order in which the server answers
INDEX_KEYS = ("index_patterns", "template", "composed_of", "priority", "version", "_meta", "ignore_missing_component_templates")
REAL_KEYS = {"data_stream", "allow_auto_create", "deprecated"}
TEMPLATE_KEYS = ("settings", "mappings")


def overlap(first: str, second: str) -> bool:
    """Return whether a name exists that both patterns match."""
    if not first or not second:
        return not (first + second).strip("*")
    if first[0] == "*":
        return overlap(first[1:], second) or overlap(first, second[1:])
    if second[0] == "*":
        return overlap(first, second[1:]) or overlap(first[1:], second)
    return first[0] == second[0] and overlap(first[1:], second[1:])


def _names(store: dict[str, Any], expression: str | None) -> list[str]:
    if not expression:
        return sorted(store)
    found: list[str] = []
    for part in expression.split(","):
        found += [
            name for name in sorted(store) if (fnmatchcase(name, part) if "*" in part else name == part) and name not in found
        ]
    return found


@dataclass(slots=True)
class Templates:
    """All templates; `dated` tells whether answers carry dates (9.x)."""

    millis: Callable[[], int]
    dated: bool
    tiered: bool  # _simulate_index shows the data tier (8.x)
    components: dict[str, Json] = field(default_factory=dict)
    indices: dict[str, Json] = field(default_factory=dict)

    def put_component(self, name: str, body: Json, *, create: bool = False) -> None:
        """Store a component template."""
        if create and name in self.components:
            raise illegal(f"component template [{name}] already exists")
        given = self._known(body, COMPONENT_KEYS, f"component template [{name}]")
        if "template" not in given:
            raise refuse(400, "x_content_parse_exception", "[1:1] [component_template] Required [template]")
        given["template"] = self._template(given["template"])
        mapping.parse(given["template"].get("mappings", {}))
        before = self.components.get(name)
        self.components[name] = given
        try:
            for user in self._users(name):
                mapping.parse(self._composed(self.indices[user])[1])
        except Refusal:
            self.components.pop(name)
            if before is not None:
                self.components[name] = before
            raise
        self._date(given, before)

    def put_index(self, name: str, body: Json, *, create: bool = False) -> None:
        """Store an index template."""
        if create and name in self.indices:
            raise illegal(f"index template [{name}] already exists")
        given = self._known(body, INDEX_KEYS, f"index template [{name}]")
        patterns = given.get("index_patterns")
        if not patterns:
            raise refuse(400, "x_content_parse_exception", "[1:1] Required [index_patterns]")
        given["index_patterns"] = [patterns] if isinstance(patterns, str) else patterns
        if "template" in given:
            given["template"] = self._template(given["template"])
        self._check_components(name, given)
        self._check_priority(name, given)
        try:
            mapping.parse(self._composed(given)[1])
        except Refusal as error:
            raise self._invalid(name, error) from error
        given = {key: given.get(key, []) for key in INDEX_KEYS if key in given or key == "composed_of"}
        self._date(given, self.indices.get(name))
        self.indices[name] = given

    @staticmethod
    def _known(body: Json, keys: tuple[str, ...], what: str) -> Json:
        for key in body:
            if key in REAL_KEYS:
                raise CannotDo(f"[{key}] in {what}")
            if key not in keys:
                raise refuse(
                    400, "x_content_parse_exception", f"[1:1] [{what.partition(' [')[0].replace(' ', '_')}] unknown field [{key}]"
                )
        known = {key: body[key] for key in keys if key in body}
        return {**known, "_meta": hashed(known["_meta"])} if "_meta" in known else known

    @staticmethod
    def _template(given: Json) -> Json:
        for key in given:
            if key not in TEMPLATE_KEYS:
                if key in ("aliases", "lifecycle", "data_stream_options"):
                    raise CannotDo(f"[{key}] in a template")
                raise refuse(400, "x_content_parse_exception", f"[1:1] [template] unknown field [{key}]")
        result = {key: given[key] for key in TEMPLATE_KEYS if key in given}
        if "settings" in result:
            result["settings"] = nested(checked(flat(result["settings"]), template=True))
        if "mappings" in result:
            result["mappings"] = hashed(result["mappings"])
        return result

    def _date(self, given: Json, before: Json) -> None:
        if self.dated:
            now = self.millis()
            given["created_date_millis"] = before["created_date_millis"] if before else now
            given["modified_date_millis"] = now

    def _check_components(self, name: str, given: Json) -> None:
        optional = given.get("ignore_missing_component_templates", [])
        missing = [part for part in given.get("composed_of", []) if part not in self.components and part not in optional]
        if missing:
            cause = f"index template [{name}] specifies component templates [{', '.join(missing)}] that do not exist"
            raise refuse(400, "invalid_index_template_exception", f"index_template [{name}] invalid, cause [{cause}]")

    def _check_priority(self, name: str, given: Json) -> None:
        priority = given.get("priority", 0)
        clashes = {
            other: body["index_patterns"]
            for other, body in sorted(self.indices.items())
            if other != name
            and body.get("priority", 0) == priority
            and any(overlap(a, b) for a in given["index_patterns"] for b in body["index_patterns"])
        }
        if clashes:
            listed = ", ".join(f"{other} => [{', '.join(patterns)}]" for other, patterns in clashes.items())
            raise illegal(
                f"index template [{name}] has index patterns [{', '.join(given['index_patterns'])}] matching patterns from existing templates "
                f"[{','.join(clashes)}] with patterns ({listed}) that have the same priority [{priority}], multiple index templates may not match "
                "during index creation, please use a different priority"
            )

    @staticmethod
    def _invalid(name: str, error: Refusal) -> Refusal:
        inner = error.body["error"]
        chain = {"type": inner["type"], "reason": inner["reason"], "caused_by": inner["caused_by"]}
        middle = {"type": "illegal_argument_exception", "reason": f"invalid composite mappings for [{name}]", "caused_by": chain}
        return refuse(
            400, "illegal_argument_exception", f"composable template [{name}] template after composition is invalid", middle
        )

    def _users(self, component: str) -> list[str]:
        return [name for name, body in sorted(self.indices.items()) if component in body.get("composed_of", [])]

    def delete_component(self, expression: str) -> None:
        """Remove component templates, unless an index template uses them."""
        names = _names(self.components, expression)
        if not names:
            raise refuse(404, "resource_not_found_exception", expression)
        used = [name for name in names if self._users(name)]
        if used:
            users = sorted({user for name in used for user in self._users(name)})
            raise illegal(
                f"component templates [{', '.join(used)}] cannot be removed as they are still in use by index templates [{', '.join(users)}]"
            )
        for name in names:
            del self.components[name]

    def delete_index(self, expression: str) -> None:
        """Remove index templates."""
        names = _names(self.indices, expression)
        if not names:
            raise refuse(404, "resource_not_found_exception", f"index_template [{expression}] missing")
        for name in names:
            del self.indices[name]

    def get_components(self, expression: str | None) -> Json:
        """Return the component templates of a name or pattern."""
        names = _names(self.components, expression)
        if not names and expression and "*" not in expression:
            raise refuse(404, "resource_not_found_exception", f"component template matching [{expression}] not found")
        return {"component_templates": [{"name": name, "component_template": self.components[name]} for name in names]}

    def get_indices(self, expression: str | None) -> Json:
        """Return the index templates of a name or pattern."""
        names = _names(self.indices, expression)
        if not names and expression and "*" not in expression:
            raise refuse(404, "resource_not_found_exception", f"index template matching [{expression}] not found")
        return {"index_templates": [{"name": name, "index_template": self.indices[name]} for name in names]}

    def matching(self, index: str) -> list[str]:
        """Return the templates whose patterns match an index name, the one that wins first."""
        found = [
            name for name, body in self.indices.items() if any(fnmatchcase(index, pattern) for pattern in body["index_patterns"])
        ]
        return sorted(found, key=lambda name: -self.indices[name].get("priority", 0))

    def _composed(self, body: Json) -> tuple[dict[str, Any], Json]:
        parts = [self.components[name]["template"] for name in body.get("composed_of", []) if name in self.components]
        settings: dict[str, Any] = {}
        tree: Json = {}
        for part in [*parts, body.get("template", {})]:
            settings |= flat(part.get("settings", {}))
            given = part.get("mappings", {})
            tree = mapping.merged(tree, mapping.parse(given).tree if given else {}, templates=True)
        return settings, tree

    def for_index(self, name: str) -> tuple[dict[str, Any], Json]:
        """Return settings and mapping that a new index gets."""
        winners = self.matching(name)
        return self._composed(self.indices[winners[0]]) if winners else ({}, {})

    def simulate(self, names: list[str]) -> Json:
        """Return what an index of the first template would be, and which templates it hides."""
        if not names:
            return {"template": {"settings": {}, "mappings": {}, "aliases": {}}, "overlapping": []}
        settings, tree = self._composed(self.indices[names[0]])
        if self.tiered:
            settings["index.routing.allocation.include._tier_preference"] = "data_content"
        hidden = [{"name": name, "index_patterns": self.indices[name]["index_patterns"]} for name in names[1:]]
        return {
            "template": {"settings": nested(settings), "mappings": mapping.parse(tree).tree, "aliases": {}},
            "overlapping": hidden,
        }
