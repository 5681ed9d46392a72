"""Whether a store is well: one line a thing that was looked at, with the remedy where it is not as it should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ingest.core import kernel
from ingest.core.errors import StoreError, UsageError, counted
from ingest.query.origin import KINDS, named
from ingest.store.verify import Verification

OK, WRONG, NOT_SEEN = "ok", "wrong", "not seen"


@dataclass(frozen=True, slots=True)
class Line:
    """What was looked at, its state, what was found, and as `remedy` a command or a setting where it is wrong.

    The state is `not seen` where the login may not look at it, or the server does not tell.
    """

    name: str
    state: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return it for people; the remedy stands in a line of its own."""
        return f"{self.state:<8}  {self.name}: {self.text}" + (f"\n          remedy: {self.remedy}" if self.remedy else "")

    def as_dict(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return asdict(self)


def examined(url: str) -> Iterator[Line]:
    """Yield what is found of this installation and of the store at a URL. UsageError where it names none."""
    kind = next((begin for begin in KINDS if url.startswith(begin)), "")
    if not kind:
        raise UsageError(f"{url!r} is no store: give sqlite:PATH or http(s)://HOST:PORT")
    yield Line("readers", OK, kernel.in_words())
    room = KINDS[kind].rsplit(".", 2)[0]
    yield from named(f"{room}.doctor.examined")(url)


def fits(verification: Verification, url: str) -> Iterator[Line]:
    """Yield a line for each kind of fault in what the store holds, or one that there is none."""
    what = "what is stored"
    for fault in verification.faults:
        remedy = f"tailboard runs check --mend --store '{url}'" if "--mend" in fault.remedy else fault.remedy
        yield Line(what, WRONG, f"{fault.kind}: {fault.count:,} places; the first: {fault.first}", remedy)
    for sentence in verification.unfinished:
        yield Line(what, NOT_SEEN, sentence)
    if not verification.faults:
        held = f"{counted(verification.runs, 'run')}, {counted(verification.documents, 'document')}"
        yield Line(what, OK, f"{held}, all belong to a run and add up")


def failed(name: str, error: StoreError, remedy: str = "") -> Line:
    """Return the line of what ended with an error; its sentence says what to do where there is no remedy."""
    return Line(name, WRONG, str(error), remedy)
