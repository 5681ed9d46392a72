"""Two sides of one run, cut at its marks: before and after, or outside and during; and the marks that a run has.

    first, second, said = sides_at("cache on", marks, life, step)
    first.name                              nightly-42 before 'cache on'
    first.ask(origin.answer)(question)      what a question is answered about this side alone, at any step

Where what matches has no end it is cut into what lies before the first mark and after the last; where it lasted, into what lies
outside and what lies during it. A side is made of whole windows of the stored step, and asked range by range: the sum is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ingest.core.errors import InputError, UsageError
from ingest.core.marks import AFTER_END_NS, Mark, in_time_order, of_run
from ingest.core.nearest import marks_for
from ingest.core.phases import AFTER, BEFORE, DURING, OUTSIDE, NotedMark, Phase, Span, stretches
from ingest.core.timing import Instant, format_duration
from ingest.query.missing import union
from ingest.query.origin import Origin
from ingest.query.overview import span_of
from ingest.query.question import ALL, Answer, NothingMatchesError, Question
from ingest.query.regrouped import regrouped
from ingest.query.spans import spanned
from ingest.query.steps import widened

Ask = Callable[[Question], Answer]
NotedIn = Callable[[Answer], Sequence[NotedMark]]

MOST_STRETCHES = 100


def noted_in(origin: Origin, given: Sequence[Mark] = ()) -> NotedIn:
    """Return what gives the marks of the run of an answer in order: those kept by an origin, and those given that overlap it.

    As in a store, a run takes marks until AFTER_END_NS behind its end.
    """

    def noted(answer: Answer) -> list[NotedMark]:
        end = span_of(answer.parts)[1] + AFTER_END_NS
        marks = {(int(mark["at_ns"]), str(mark["text"])): mark for mark in origin.marks(answer)}
        for run in answer.runs:
            own = of_run(given, run, answer.run_start_ns[run], end, relative=answer.relative)
            marks |= {(int(mark["at_ns"]), str(mark["text"])): mark for mark in own}
        return sorted(marks.values(), key=in_time_order)

    return noted


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a run that began at `zero_ns`: what it is called, and its ranges, edges of windows in ns, in order."""

    name: str
    run: str
    zero_ns: int
    spans: tuple[Span, ...]
    notes: tuple[str, ...] = ()

    def questions(self, question: Question) -> Iterator[Question]:
        """Yield the questions about this side: the one that is asked, a range at a time."""
        for low, high in self.spans:
            begin, end = (Instant(edge - self.zero_ns, relative=True) for edge in (low, high))
            yield replace(question.about([self.run]), begin=begin, end=end)

    def ask(self, ask: Ask) -> Ask:
        """Return what answers questions about this side; InputError where nothing of them lies in it."""

        def asked(question: Question) -> Answer:
            answers = []
            for part in self.questions(question):
                with suppress(NothingMatchesError):
                    answers.append(ask(part))
            if not answers:
                raise InputError(f"nothing of what is asked lies in {self.name}")
            return self._added(answers)

        return asked

    def _added(self, answers: Sequence[Answer]) -> Answer:
        """Return the sum of answers about ranges, as one about a run with the name of this side."""
        step = math.lcm(*(answer.step_ns for answer in answers)) if all(answer.step_ns for answer in answers) else 0
        parts = [part for answer in answers for part in answer.parts]
        first = answers[0]
        joined = replace(
            first,
            parts=tuple(widened(parts, step) if step else spanned(parts)),
            step_ns=step,
            runs=(self.name,),
            run_start_ns={self.name: self.spans[0][0]},
            covered={},
            undated=frozenset(),
            series=max(answer.series for answer in answers),
            warnings=(*self.notes, *dict.fromkeys(text for answer in answers for text in answer.warnings)),
            missing=union(answer.missing for answer in answers),
            caveats=tuple(dict.fromkeys(caveat for answer in answers for caveat in answer.caveats)),
        )
        return regrouped(joined, joined.by)


def sides_of(origin: Origin, run: str, glob: str, question: Question, given: Sequence[Mark] = ()) -> tuple[Side, Side]:
    """Return what of a run lies on both sides of the marks that match, within the range of a question.

    `given` are marks beside those that the origin keeps. InputError where no mark matches, or no whole window lies on a side;
    UsageError for marks of which some have an end, and for too many.
    """
    (record,) = [record for record in origin.runs() if record.run == run]
    whole = origin.answer(Question(step=ALL).about([run]))
    step, zero = record.step_ns, whole.run_start_ns[run]
    low, high = span_of(whole.parts)
    begin, end = (edge.epoch_ns(zero) if edge else None for edge in (question.begin, question.end))
    low, high = max(low, low if begin is None else begin), min(high, high if end is None else end)
    low, high = low // step * step, -(-high // step) * step
    if low >= high:
        raise InputError("no window of this run lies between --from and --to")
    marks = noted_in(origin, given)(whole)
    names, spans = _cut(glob, marks, run, (low, high), step)
    if (count := sum(map(len, spans))) > MOST_STRETCHES:
        raise UsageError(f"--at {glob} cuts {run} into {count} stretches, and each is read by itself: at most {MOST_STRETCHES}")
    left = (high - low - sum(end - begin for side in spans for begin, end in side)) // step
    counted = f"1 window of {format_duration(step)} is" if left == 1 else f"{left:,} windows of {format_duration(step)} are"
    notes = (f"{counted} on neither side: not wholly {names[0]}, nor {names[1]}",) if left else ()
    first, second = (
        Side(f"{run} {name}", run, zero, side, own) for name, side, own in zip(names, spans, (notes, ()), strict=True)
    )
    return first, second


def _cut(
    glob: str, marks: Sequence[NotedMark], run: str, life: Span, step_ns: int
) -> tuple[tuple[str, str], tuple[tuple[Span, ...], tuple[Span, ...]]]:
    """Return the names of both sides of a run, and their ranges of whole windows."""
    chosen = [mark for mark in marks if Phase(AFTER, glob).matches(mark)]
    lasting = [mark for mark in chosen if mark.get("end_ns") is not None]
    if not chosen:
        texts = [str(mark["text"]) for mark in marks]
        note = "note it with tailboard mark, or give --marks FILE"
        raise InputError(f"--at {glob} matches no mark of {run} ({marks_for(glob, texts)}): {note}")
    if lasting and len(lasting) < len(chosen):
        raise UsageError(f"--at {glob} matches marks with an end and marks without one: name one sort of them")
    words = (OUTSIDE, DURING) if lasting else (BEFORE, AFTER)
    phases = [Phase(word, glob) for word in words]
    first, second = (stretches([phase], marks, run).within(*life, step_ns).spans for phase in phases)
    return (str(phases[0]), str(phases[1])), (first, second)
