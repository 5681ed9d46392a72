"""The same data twice: files of the same bytes or labels; and sources whose labels no store could hold."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.core.coverage import Caveat
from ingest.core.errors import InputError, as_text, listed
from ingest.core.labels import LABELS
from ingest.read.context import FORM, SHADOWING, SPANS
from ingest.read.format_names import HDR, PROMETHEUS, YCSB
from ingest.read.formats import is_timed
from ingest.read.sources import PREFER_RAW, SHADOWED, SKIPPED, Found, Place, Skipped, Source
from ingest.read.text import COMPRESSED, blocks, open_plain, plain_name, size_of

if TYPE_CHECKING:
    from ingest.read.polled_series import Span

# The same data twice: files of the same bytes, and files of the same labels.


SAMPLE = 1 << 16
TWO_FORMS = "another file holds the same operations in another form (--prefer chooses between single operations and histograms)"
FINER = "another file holds the same series and times in finer bins: native histograms of Prometheus beside classic ones"
SAID = ("--host", "--host-alias")


def once_by_content(
    sources: Sequence[Source], place_of: Callable[[Path], Place | None], skipped: list[Skipped], caveats: list[Caveat]
) -> list[Source]:
    """Return the sources without those that hold the bytes of another under the same labels, or of CBT's own working folder.

    The same bytes under other labels are a caveat: two hosts never measure the same.
    """
    by_size: dict[int, list[Source]] = defaultdict(list)
    for source in sources:
        by_size[size_of(source.path)].append(source)
    twins: dict[bytes, list[Source]] = defaultdict(list)
    for size, alike in by_size.items():
        for digest, source in _by_digest(alike, size):
            twins[digest].append(source)
    dropped: set[Path] = set()
    for packed, plain in _packed_beside(sources):
        dropped.add(packed)
        skipped.append(Skipped(packed, SKIPPED, f"the same content as {plain}, compressed: counted once"))
    copied: list[tuple[Source, Source]] = []
    for group in twins.values():
        ordered = sorted(group, key=lambda twin: (not _has_host(twin, place_of), twin.path))
        earlier: dict[tuple[str, ...], list[Source]] = defaultdict(list)
        for source in ordered:
            labels, thread = _alike_by(source)
            candidates = [*(() if source.context.series.host else earlier[thread]), *earlier[labels]]
            other = next((twin for twin in candidates if _same_measurement(twin, source, place_of)), None)
            earlier[labels].append(source)
            earlier[thread].append(source)
            if source is ordered[0]:
                continue
            if other is not None:
                dropped.add(source.path)
                skipped.append(Skipped(source.path, SKIPPED, f"the same content as {other.path}: counted once"))
            elif source.path not in dropped:
                copied.append((source, ordered[0]))
    if copied:
        names = listed(str(copy.path) for copy, _ in copied)
        sentence = f"the same bytes as {listed(sorted({str(other.path) for _, other in copied}))}: was one copied over the other?"
        caveats.append(Caveat("same-content", names, sentence, "each is counted under its own labels"))
    return [source for source in sources if source.path not in dropped]


def _packed_beside(sources: Sequence[Source]) -> Iterator[tuple[Path, Path]]:
    """Yield compressed files that hold what a plain one beside them holds, as after `gzip -k`, with the plain ones."""
    named: dict[Path, list[Path]] = defaultdict(list)
    if not any(source.path.name.endswith(COMPRESSED) for source in sources):
        return
    for source in sources:
        path = source.path
        named[path.with_name(plain_name(path))].append(path)
    for plain, paths in named.items():
        ordered = sorted(paths, key=lambda path: (path != plain, path))
        digests = {path: _digest(path, blocks(path)) for path in ordered} if len(paths) > 1 else {}
        yield from ((path, ordered[0]) for path in ordered[1:] if digests[path] == digests[ordered[0]])


def _has_host(source: Source, place_of: Callable[[Path], Place | None]) -> bool:
    place = place_of(source.path)
    return (place is not None and any("id-" in part for part in place.run.split("/"))) or bool(source.context.series.host)


def _alike_by(source: Source) -> tuple[tuple[str, ...], ...]:
    """Return what a source is found by: only those that share one of these can be one measurement."""
    series = source.context.series
    return (series.run, source.identity), (series.volume, series.job, series.kind)


def _same_measurement(first: Source, other: Source, place_of: Callable[[Path], Place | None]) -> bool:
    """Return whether two files of the same bytes are one measurement: the same labels, or one in CBT's working folder."""
    mine, theirs = first.context.series, other.context.series
    if mine.run == theirs.run:
        zeros = {zero for source in (first, other) if (zero := source.context.zero.epoch_ns) is not None}
        return first.identity == other.identity and len(zeros) < 2  # two beginnings by fio's JSON: one copied over the other
    places = place_of(first.path), place_of(other.path)
    if None in places or places[0] is None or places[1] is None or places[0].archive != places[1].archive:
        return False
    return (mine.volume, mine.job, mine.kind) == (theirs.volume, theirs.job, theirs.kind) and not theirs.host and bool(mine.host)


def _by_digest(sources: Sequence[Source], size: int) -> Iterator[tuple[bytes, Source]]:
    """Yield the digest of each file among those of one size that ends as another; the others are alone."""
    if len(sources) < 2 or not size:
        return
    looks = {source.path: _look(source.path, size) for source in sources}
    alike = Counter(looks.values())
    for source in sources:
        if alike[looks[source.path]] > 1:
            yield _digest(source.path, _bytes_of(source.path)), source


def _look(path: Path, size: int) -> int | str:
    """Return a checksum of the last 64 KiB of a file, in a seventh of the time of a digest: files of unlike ones differ."""
    try:
        with open_plain(path) as stream:
            stream.seek(max(0, size - SAMPLE))
            return zlib.crc32(stream.read(SAMPLE))
    except (InputError, OSError):
        return str(path)


def _bytes_of(path: Path) -> Iterator[bytes]:
    with open_plain(path) as stream:
        while data := stream.read(1 << 20):
            yield data


def _digest(path: Path, pieces: Iterable[bytes | memoryview]) -> bytes:
    """Return a digest of the pieces of a file; of one that cannot be read to its end, of its name."""
    import hashlib  # takes 3 ms, and most calls meet no two files that may be alike

    digest = hashlib.blake2b(digest_size=16)
    try:
        for piece in pieces:
            digest.update(piece)
    except (OSError, InputError):
        return str(path).encode()
    return digest.digest()


def in_one_form(sources: Sequence[Source], prefer: str, skipped: list[Skipped]) -> list[Source]:
    """Return the sources with each operation in one of the forms that its tool wrote it in: an HdrHistogram log and another.

    The log over time is taken, or with `prefer` raw the single operations; what only the other form holds is read, too.
    """
    forms: dict[tuple[str, ...], dict[bool, set[str]]] = defaultdict(lambda: defaultdict(set))
    if not any(FORM in source.context.options for source in sources):
        return list(sources)
    single = {source.format for source in sources if FORM in source.context.options} & {YCSB}
    first = YCSB if prefer == PREFER_RAW and single else HDR

    def place(source: Source) -> tuple[str, ...]:
        series = source.context.series
        return series.run, series.host, series.volume

    for source in sources:
        forms[place(source)][source.format == first].update(source.context.options.get(FORM, "").split())
    kept = []
    for source in sources:
        mine, taken = set(source.context.options.get(FORM, "").split()), forms[place(source)][True]
        if source.format != first and mine and mine <= taken:
            skipped.append(Skipped(source.path, SHADOWED, TWO_FORMS))
        elif source.format != first and mine & taken:
            kept.append(replace(source, context=replace(source.context, shadowed=frozenset(mine & taken))))
        else:
            kept.append(source)
    return kept


def in_finer_bins(sources: Sequence[Source], skipped: list[Skipped], caveats: list[Caveat]) -> list[Source]:
    """Return the sources of polls with each series once where files hold it in two forms: the native one is taken."""
    in_two_forms = [source for source in sources if source.format == PROMETHEUS]
    if len(in_two_forms) < 2:
        return list(sources)
    from ingest.read.polled_series import parse_spans

    spans = {source.path: parse_spans(source.context.options[SPANS]) for source in in_two_forms}
    fine: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for source in in_two_forms:
        for span in spans[source.path]:
            if span.native:
                fine[source.context.series.run, span.series].append(span)
    kept = []
    for source in sources:
        of_file = spans.get(source.path, [])
        run, own = source.context.series.run, [span for span in of_file if not span.native]
        others = {other.text: other for span in own for other in fine[run, span.series] if _overlap(span, other)}
        covered = [any(_within(span, other) for other in fine[run, span.series]) for span in own]
        if own and len(own) == len(of_file) and all(covered):
            skipped.append(Skipped(source.path, SHADOWED, FINER))
        elif others:
            caveats.append(Caveat("two-forms", str(source.path), FINER, "give one form alone to see it"))
            options = {**source.context.options, SHADOWING: "\n".join(sorted(others))}
            kept.append(replace(source, context=replace(source.context, options=options)))
        else:
            kept.append(source)
    return kept


def _overlap(one: Span, other: Span) -> bool:
    return one.start_ns < other.end_ns and other.start_ns < one.end_ns


def _within(one: Span, other: Span) -> bool:
    return other.start_ns <= one.start_ns and one.end_ns <= other.end_ns


def conflicts(discovered: Found) -> Iterator[Caveat]:
    """Yield the sources of one run that have the same labels and hold other data: adding them up would make two hosts one.

    Where the user gave them one name, that is what was asked for. Logs of unlike formats would be one series, too: in a store
    one would replace the other, so that is never asked for.
    """
    first: dict[tuple[str, str], Source] = {}
    timed: dict[tuple[str, str], Source] = {}
    for source in discovered.sources:
        run = source.context.series.run
        other = first.setdefault((run, source.identity), source)
        of_user = (entry for either in (source, other) for entry in either.evidence if entry.origin in SAID)
        if other is not source and not any(entry.fact == "host" for entry in of_user):
            yield Caveat("same-labels", str(source.path), two_of_one(source, str(other.path)))
        if is_timed(source.format):
            other = timed.setdefault((run, labels_in(source.identity)), source)
            if other.format != source.format:
                yield Caveat("same-labels", str(source.path), two_formats(source, str(other.path)))


def labels_in(identity: str) -> str:
    """Return the labels that an identity of a source holds, without its format."""
    return identity.partition("|")[2]


def rival(source: Source, identities: Iterable[str]) -> str | None:
    """Return which of the identities of its labels is of a source of another format, so that both would write the same series."""
    if not is_timed(source.format):
        return None
    others = (identity for identity in identities if identity != source.identity)
    return next((identity for identity in others if is_timed(identity.partition("|")[0])), None)


def two_formats(source: Source, other: str) -> str:
    """Return the sentence about two sources of unlike formats that have the same labels."""
    return (
        f"has the same labels as {other}, which is of another format ({_labels_of(source)}): if both hold the same operations, "
        "give one of them alone; else distinguish them by --host or --run"
    )


def two_of_one(source: Source, other: str) -> str:
    """Return the sentence about two sources of one identity that hold different data."""
    series = source.context.series
    what = f"two hosts called {series.host}" if series.host else "two hosts without a name"
    return (
        f"holds other data than {other} under the same labels ({_labels_of(source)}): {what}? use --host or --host-alias, "
        "another --run, or --replace"
    )


def _labels_of(source: Source) -> str:
    series = source.context.series
    return f"host {series.host or '-'}, volume {series.volume or '-'}, job {series.job or '-'}"


# Discovered sources with labels that are Unicode throughout: file names need not be, and no store or page could hold them.


labels_of = attrgetter(*LABELS)


def decodable(discovered: Found) -> Found:
    """Return the discovered files with labels, runs and names in accounts that are Unicode throughout; paths stay as they are."""
    labels = {as_text(run): _labels(of_run) for run, of_run in discovered.labels.items()}
    missing = tuple(replace(entry, labels=_labels(entry.labels)) for entry in discovered.missing)
    stated = tuple(replace(entry, labels=_labels(entry.labels)) for entry in discovered.stated)
    sources = tuple(map(_decodable, discovered.sources))
    return replace(discovered, sources=sources, labels=labels, missing=missing, stated=stated)


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: as_text(value) for name, value in labels.items()}


def _decodable(source: Source) -> Source:
    series, account = source.context.series, source.context.account
    account.path = as_text(account.path)
    if "".join(labels_of(series)).isascii():
        return source
    texts = map(as_text, labels_of(series))
    return replace(source, context=replace(source.context, series=series.replaced(**dict(zip(LABELS, texts, strict=True)))))
