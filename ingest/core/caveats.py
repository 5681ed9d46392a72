"""What a reader of numbers must know beside them: one value for files, stores, tables, pages and programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ingest.core.errors import counted
from ingest.core.plain import as_text
from ingest.core.values import Value

MOST_ALIKE = 4  # sentences of one code and remedy that are all shown


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Caveat(Value):
    """What a reader of the numbers must know: a word for programs, the file or run it is about, a sentence, what to do."""

    code: str
    subject: str
    sentence: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.sentence}" + (f"; {self.remedy}" if self.remedy else "")

    def told(self) -> dict[str, str]:
        """Return the caveat as plain values, as `of` takes them."""
        words = {"code": self.code, "subject": self.subject, "sentence": self.sentence, "remedy": self.remedy}
        return {name: as_text(word) for name, word in words.items()}  # stores hold no bytes of names that are no UTF-8

    @staticmethod
    def of(stored: Mapping[str, str]) -> Caveat:
        """Return the caveat that `told` gave."""
        return Caveat(stored["code"], stored["subject"], stored["sentence"], stored.get("remedy", ""))


def sentences(caveats: Iterable[Caveat]) -> tuple[str, ...]:
    """Return the caveats as people read them, each once; of many of one code and remedy the first, and how many are like it."""
    alike: dict[tuple[str, str], list[Caveat]] = {}
    for caveat in dict.fromkeys(caveats):
        alike.setdefault((caveat.code, caveat.remedy), []).append(caveat)
    said = []
    for first, *others in alike.values():
        many = len(others) >= MOST_ALIKE
        shown = replace(first, sentence=f"{first.sentence} ({len(others)} more like this)") if many else first
        said += [str(shown), *(() if many else map(str, others))]
    return tuple(dict.fromkeys(said))


def in_last_bin(samples: int) -> str:
    """Return the sentence on samples of which only the least possible value is known."""
    return f"{counted(samples, 'sample lies', 'samples lie')} in the last bin: at least its lower edge, true values unknown"
