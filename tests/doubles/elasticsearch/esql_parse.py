"""ES|QL text into commands: a small part of the language, all the rest is refused.

FROM tailboard-rollups-* | WHERE latency.p99 > 1 AND operation == "read" | STATS p99 = MAX(latency.p99) BY operation,
    t = BUCKET(@timestamp, 10 seconds) | SORT t DESC | KEEP t, p99 | LIMIT 10
"""

from __future__ import annotations

import re
from typing import Any

from tests.doubles.elasticsearch.errors import CannotDo
from tests.doubles.elasticsearch.esql_words import Command, Lexeme, Node, lexemes, text_of

FROM = re.compile(r"\s*FROM\s+(?P<pattern>[^|\s,]+(?:\s*,\s*[^|\s,]+)*)\s*(?=\||$)", re.IGNORECASE)
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
UNITS = {
    "millisecond": 1, "milliseconds": 1, "ms": 1, "second": 1000, "seconds": 1000, "sec": 1000, "s": 1000, "minute": 60_000,
    "minutes": 60_000, "min": 60_000, "hour": 3_600_000, "hours": 3_600_000, "h": 3_600_000, "day": 86_400_000, "days": 86_400_000,
}  # fmt: skip
AGGREGATES = ("MAX", "MIN", "SUM", "AVG", "COUNT", "PERCENTILE")
RESERVED = frozenset(
    "AND ASC BY DESC FALSE FIRST IN IS LAST LIKE NOT NULL NULLS OR RLIKE TRUE".split()
)  # its grammar's own words


def parse(text: str) -> tuple[str, list[Command]]:
    """Return the index pattern and the commands after it."""
    match = FROM.match(text)
    if match is None:
        raise CannotDo("ES|QL that does not begin with FROM index-pattern")
    return re.sub(r"\s+", "", match.group("pattern")), _Parser(text, match.end()).commands()


class _Parser:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.lexemes = lexemes(text, start)
        self.at = 0

    @property
    def here(self) -> Lexeme:
        return self.lexemes[self.at]

    def take(self, *words: str) -> bool:
        """Take the next word if it is one of these."""
        if self.here.kind != "text" and self.here.word in words:
            self.at += 1
            return True
        return False

    def need(self, word: str) -> None:
        if not self.take(word):
            raise CannotDo(f"ES|QL: {word} expected, not {self.here.text or 'the end'!r}")

    def name(self) -> str:
        if self.here.kind != "name":
            raise CannotDo(f"ES|QL: a name expected, not {self.here.text or 'the end'!r}")
        if self.here.word in RESERVED:
            raise CannotDo(f"ES|QL: {self.here.text} is a word of the language, no name without backquotes")
        self.at += 1
        return self.lexemes[self.at - 1].text.replace("`", "")

    def commands(self) -> list[Command]:
        found = []
        while self.take("|"):
            word = self.here.word
            self.at += 1
            reader = {
                "WHERE": self._where,
                "EVAL": self._eval,
                "STATS": self._stats,
                "SORT": self._sort,
                "KEEP": self._keep,
                "LIMIT": self._limit,
            }.get(word)
            if reader is None:
                raise CannotDo(f"ES|QL command {word}")
            found.append(reader())
        if self.here.kind != "end":
            raise CannotDo(f"ES|QL at {self.here.text!r}")
        return found

    def _where(self) -> Command:
        return Command("WHERE", (self.expression(),))

    def _named(self) -> tuple[str, Node]:
        if self.here.kind == "name" and self.lexemes[self.at + 1].text == "=":
            name = self.name()
            self.need("=")
            return name, self.expression()
        node = self.expression()
        return node.text.replace("`", "") if node.kind == "field" else node.text, node

    def _list(self, one: Any) -> tuple[Any, ...]:
        found = [one()]
        while self.take(","):
            found.append(one())
        return tuple(found)

    def _eval(self) -> Command:
        return Command("EVAL", self._list(self._named))

    def _stats(self) -> Command:
        items = () if self.here.word == "BY" else self._list(self._named)
        return Command("STATS", items, self._list(self._named) if self.take("BY") else ())

    def _sort(self) -> Command:
        return Command("SORT", self._list(self._sort_key))

    def _sort_key(self) -> tuple[Node, bool, bool]:
        node = self.expression()
        down = self.take("DESC")
        if not down:
            self.take("ASC")
        nulls_first = down
        if self.take("NULLS"):
            nulls_first = self.take("FIRST")
            if not nulls_first:
                self.need("LAST")
        return node, down, nulls_first

    def _keep(self) -> Command:
        return Command("KEEP", self._list(self._pattern))

    def _pattern(self) -> str:
        text, end = "", self.here.place
        while self.here.kind == "name" or self.here.text == "*":
            if self.here.place != end:
                break
            text += self.here.text.replace("`", "")
            end = self.here.place + len(self.here.text)
            self.at += 1
        if not text:
            raise CannotDo(f"ES|QL: a column expected, not {self.here.text!r}")
        return text

    def _limit(self) -> Command:
        text = self.here.text
        if self.here.kind != "number" or not text.isdigit():
            raise CannotDo(f"ES|QL LIMIT {text}")
        self.at += 1
        return Command("LIMIT", (int(text),))

    def expression(self) -> Node:
        left = self._conjunction()
        while self.take("OR"):
            left = self._node("OR", None, left, self._conjunction())
        return left

    def _node(self, kind: str, value: Any, *parts: Node) -> Node:
        begin = parts[0].place if parts else self.here.place
        last = self.lexemes[self.at - 1]
        return Node(kind, value, parts, self.text[begin : last.place + len(last.text)], begin)

    def _conjunction(self) -> Node:
        left = self._negation()
        while self.take("AND"):
            left = self._node("AND", None, left, self._negation())
        return left

    def _negation(self) -> Node:
        if self.take("NOT"):
            return self._node("NOT", None, self._negation())
        return self._comparison()

    def _comparison(self) -> Node:
        left = self._sum()
        if self.here.text in COMPARISONS:
            sign = self.here.text
            self.at += 1
            return self._node(sign, None, left, self._sum())
        if self.take("IS"):
            inverse = self.take("NOT")
            self.need("NULL")
            null = self._node("NULL?", None, left)
            return self._node("NOT", None, null) if inverse else null
        inverse = self.here.word == "NOT" and self.lexemes[self.at + 1].word in ("LIKE", "IN")
        if inverse:
            self.at += 1
        found = self._like_or_in(left)
        return self._node("NOT", None, found) if inverse else found

    def _like_or_in(self, left: Node) -> Node:
        if self.take("LIKE"):
            pattern = self._atom()
            if pattern.kind != "literal" or not isinstance(pattern.value, str):
                raise CannotDo("ES|QL LIKE with other than one text")
            return self._node("LIKE", pattern.value, left)
        if self.take("IN"):
            self.need("(")
            items = self._list(self._sum)
            self.need(")")
            return self._node("IN", None, left, *items)
        return left

    def _sum(self) -> Node:
        left = self._product()
        while self.here.text in ("+", "-"):
            sign = self.here.text
            self.at += 1
            left = self._node(sign, None, left, self._product())
        return left

    def _product(self) -> Node:
        left = self._atom()
        while self.here.text in ("*", "/", "%"):
            sign = self.here.text
            self.at += 1
            left = self._node(sign, None, left, self._atom())
        return left

    def _atom(self) -> Node:
        lexeme = self.here
        self.at += 1
        if lexeme.text == "(":
            inner = self.expression()
            self.need(")")
            return inner
        if lexeme.text == "-":
            operand = self._atom()
            return Node("negative", None, (operand,), self.text[lexeme.place : operand.place + len(operand.text)], lexeme.place)
        if lexeme.kind == "number":
            return self._number(lexeme)
        if lexeme.kind == "text":
            return Node("literal", text_of(lexeme.text), (), lexeme.text, lexeme.place)
        if lexeme.kind != "name":
            raise CannotDo(f"ES|QL at {lexeme.text or 'the end'!r}")
        if lexeme.word in ("TRUE", "FALSE", "NULL"):
            return Node("literal", {"TRUE": True, "FALSE": False}.get(lexeme.word), (), lexeme.text, lexeme.place)
        return (
            self._function(lexeme)
            if self.here.text == "("
            else Node("field", lexeme.text.replace("`", ""), (), lexeme.text, lexeme.place)
        )

    def _number(self, lexeme: Lexeme) -> Node:
        value: Any = int(lexeme.text) if lexeme.text.isdigit() else float(lexeme.text)
        if self.here.kind == "name" and self.here.text.lower() in UNITS:
            value *= UNITS[self.here.text.lower()]
            self.at += 1
            last = self.lexemes[self.at - 1]
            return Node("duration", value, (), self.text[lexeme.place : last.place + len(last.text)], lexeme.place)
        return Node("literal", value, (), lexeme.text, lexeme.place)

    def _function(self, lexeme: Lexeme) -> Node:
        if lexeme.word not in (*AGGREGATES, "BUCKET", "TO_EXPONENTIAL_HISTOGRAM"):
            raise CannotDo(f"ES|QL function {lexeme.word}")
        self.need("(")
        if lexeme.word == "COUNT" and self.take("*"):
            parts: tuple[Node, ...] = ()
        else:
            parts = self._list(self.expression)
        self.need(")")
        last = self.lexemes[self.at - 1]
        return Node(lexeme.word, None, parts, self.text[lexeme.place : last.place + 1], lexeme.place)
