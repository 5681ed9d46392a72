"""Rhythms: slow windows, or windows without completions, that come back with a period.

Candidates for periods are peaks of the periodogram against the spectrum around them, summed over harmonics (a short event has
many). What decides is the fold: in each stretch as long as the period the slowest place is looked up, and these places gather at
one phase more often than chance (binomial) allows, were each place as likely. The length of the stretches is the period, and not
a multiple or a fraction of it, if every stretch has its event, and if none of its parts would do as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Bool, Int
from ingest.query.findings import of_known
from ingest.query.findings.levels import Together, gatherings, judged
from ingest.query.findings.model import RHYTHM, Claim, Float, Ground

LEAST_PERIODS = 8
LEAST_WINDOWS = 4  # of a period: below, windows are too coarse to tell phases
LEAST_KEPT = 0.6  # of the stretches, that have their event at the phase
CHANCE = 0.01
HARMONICS = 5
OVERSAMPLED = 8
LEAST_BEYOND, MOST_BEYOND = 3.0, 8.0  # deviations, that windows are drawn in to: a wild one must not decide
PEAKS = 5  # candidates of a series that are folded
LEAST_PEAK = 40.0  # of the sum over harmonics, in units of the spectrum around; without a rhythm it is at most 37, with one 260
MULTIPLIED, MOST_MULTIPLE = 4, 5
ALIKE = 0.01
AROUND = 61  # frequencies whose median is the spectrum around one
WIDEST = 0.34  # of a period: what lasts longer is no event
APART = 0.25  # of the contrast of all, that each member has at least
LEAST_TIMES = 1.2
MEASURES = ("p50", "p99", "missing")


@dataclass(frozen=True, slots=True)
class Beat:
    """Events at `first`, `first` + `period`, ..., `width` windows long; how far beyond chance, and in what share of periods."""

    period: float
    first: float
    width: float
    certainty: float
    kept: float

    def windows(self, count: int) -> Bool:
        """Return which of so many windows are those of events, for at least half of what an event may have of a window."""
        inside: Bool = overlaps(count, self.period, self.first, self.width) >= min(self.width, 1.0) / 2
        return inside


def overlaps(count: int, period: float, first: float, width: float) -> Float:
    """Return what share of each of so many windows lies in events of that width, at `first` and every period from there."""
    since = np.arange(count + 1) - first
    turns = np.floor(since / period)
    share: Float = np.diff(turns * width + np.minimum(since - turns * period, width))
    return share


def rhythms(ground: Ground, _so_far: Sequence[Claim] = ()) -> list[Claim]:
    """Return the rhythms of a run: of all members, of those of a host or an operation, of each."""
    whole = np.flatnonzero(ground.whole)
    span = slice(int(whole[0]), int(whole[-1]) + 1)
    count = span.stop - span.start
    if count < LEAST_PERIODS * LEAST_WINDOWS:
        return []
    sets = gatherings(ground.groups)
    claims: list[Claim] = []
    taken: set[int] = set()
    for measure, values in _measures(ground, span).items():
        for together in sets:
            if taken & set(together.members.tolist()) or np.isnan(values[together.members]).all():
                continue
            beat = beat_of(_mean(values, together.members), len(sets) * len(MEASURES))
            if beat is None or not _all_have(values, together.members, beat):
                continue
            claim = _claim(ground, together, beat, measure, span)
            if claim is not None:
                claims.append(claim)
                taken |= set(together.members.tolist())
    return claims


def beat_of(series: Float, tests: int) -> Beat | None:
    """Return the rhythm of a series of windows (high is slow), None where it has none that is beyond chance.

    Held to 1 in 100 for all periods, phases and `tests` together.
    """
    found: list[tuple[float, Beat]] = []
    for period in _periods(series):
        beat = _fold(series, _refined(series, period), tests)
        if beat is not None:
            found.append((beat.certainty, beat))
    if not found:
        return None
    best = max(found, key=lambda pair: pair[0])[1]
    return _placed(series, _fundamental(series, best, tests))


def _measures(ground: Ground, span: slice) -> dict[str, Float]:
    """Return what may come back, a row a group: the level of p50, of p99, and completions that are missing; high is bad."""
    measures = {}
    with np.errstate(all="ignore"):
        for name, values in (("p50", ground.p50_ns), ("p99", ground.p99_ns)):
            logs = np.log(judged(np.where(values > 0, values, np.nan), ground.samples))[:, span]
            measures[name] = _levelled(logs)
        rate = ground.samples[:, span] / np.maximum(np.median(ground.samples[:, span], axis=1, keepdims=True), 1)
        measures["missing"] = np.maximum(_levelled(np.where(rate.sum(axis=1, keepdims=True) > 0, -rate, np.nan)), -LEAST_BEYOND)
    return measures


def _levelled(rows: Float) -> Float:
    """Return rows less their median, in units of their usual deviation."""
    out: Float = np.full(rows.shape, np.nan)
    known = np.flatnonzero((~np.isnan(rows)).any(axis=1))
    if len(known):
        centred = rows[known] - of_known.median(rows[known], axis=1, keepdims=True)
        spread = 1.4826 * of_known.median(np.abs(centred), axis=1, keepdims=True)
        largest = of_known.most(np.abs(centred), axis=1, keepdims=True)
        out[known] = centred / np.where(spread > 0, spread, np.where(largest > 0, largest, 1.0))
    return out


def _mean(rows: Float, members: Int) -> Float:
    """Return the mean of members; a window without any counts as usual."""
    values = rows[members]
    held = (~np.isnan(values)).sum(axis=0)
    mean: Float = np.where(held > 0, np.nansum(values, axis=0) / np.maximum(held, 1), 0.0)
    return mean


def _periods(series: Float) -> list[float]:
    """Return candidates for the period in windows, the strongest first."""
    count = len(series)
    ranks = np.argsort(np.argsort(series, kind="stable"), kind="stable") / count
    size = 1 << math.ceil(math.log2(OVERSAMPLED * count))
    candidates: list[tuple[float, float]] = []
    # Of the values drawn in, and of their upper ranks alone.
    for values in (np.clip(series, -LEAST_BEYOND, MOST_BEYOND), np.maximum(ranks - 0.8, 0)):
        power = np.abs(np.fft.rfft(values - values.mean(), size)) ** 2
        parts = max(len(power) // (AROUND * OVERSAMPLED), 1)
        around = np.median(power[: len(power) // parts * parts].reshape(parts, -1), axis=1)
        middles = np.linspace(0, len(power) - 1, len(around))
        white = power / np.maximum(np.interp(np.arange(len(power)), middles, around), 1e-300)
        first, last = math.ceil(size * LEAST_PERIODS / count), size // LEAST_WINDOWS
        places = np.arange(first, last + 1)
        summed = np.zeros(len(places))
        for harmonic in range(1, HARMONICS + 1):
            inside = places * harmonic < len(white)
            summed[inside] += np.minimum(white[places[inside] * harmonic], 60.0)
        for _ in range(PEAKS):
            best = int(summed.argmax())
            if summed[best] < LEAST_PEAK:
                break
            candidates.append((float(summed[best]), size / float(places[best])))
            summed[max(best - OVERSAMPLED, 0) : best + OVERSAMPLED + 1] = 0.0
    strongest: list[float] = []
    for _, period in sorted(candidates, reverse=True):
        if all(abs(period / other - 1) > ALIKE for other in strongest):
            strongest.append(period)
    # A harmonic of a short event is as strong as the event itself: its multiples are tried, too.
    most = count / LEAST_PERIODS * (1 + ALIKE)
    several = [period * multiple for period in strongest[:MULTIPLIED] for multiple in range(2, MOST_MULTIPLE + 1)]
    return strongest + [period for period in several if period <= most]


def _refined(series: Float, period: float) -> float:
    """Return the period near a candidate whose fold stands out most: phases must not run away over the whole run."""
    count = len(series)
    reach = period * period / count
    trial = period + np.linspace(-reach, reach, 33) / 2
    trial = trial[(trial >= LEAST_WINDOWS) & (trial <= count / LEAST_PERIODS * 1.01)]
    if not len(trial):
        return period
    values = np.clip(series, -LEAST_BEYOND, MOST_BEYOND)
    parts = max(int(period), 2)
    phase = (np.arange(count) + 0.5) % trial[:, None] / trial[:, None] * parts
    codes = np.minimum(phase.astype(np.int64), parts - 1) + parts * np.arange(len(trial))[:, None]
    sums = np.bincount(codes.ravel(), np.tile(values, len(trial)), parts * len(trial))
    held = np.maximum(np.bincount(codes.ravel(), minlength=parts * len(trial)), 1)
    return float(trial[int((sums / held).reshape(-1, parts).var(axis=1).argmax())])


def _profile(values: Float, period: float) -> Float:
    """Return the mean of values by phase, in as many parts as a period has windows."""
    parts = max(int(period), 2)
    phase = np.minimum((np.arange(len(values)) + 0.5) % period / period * parts, parts - 1).astype(np.int64)
    sums = np.bincount(phase, values, parts)
    profile: Float = sums / np.maximum(np.bincount(phase, minlength=parts), 1)
    return profile


def _fold(series: Float, period: float, tests: int) -> Beat | None:
    """Return the rhythm of a period: where the slowest places of its stretches gather, if beyond chance."""
    count = len(series)
    stretches = int(count / period + 0.02)
    if stretches < LEAST_PERIODS:
        return None
    profile = _profile(series, period)
    parts = len(profile)
    top = int(profile.argmax())
    level = (profile.max() + np.median(profile)) / 2
    left = right = top
    while right - left + 1 < parts and profile[(right + 1) % parts] >= level:
        right += 1
    while right - left + 1 < parts and profile[(left - 1) % parts] >= level:
        left -= 1
    width = right - left + 1
    if width > max(WIDEST * parts, 2):
        return None
    # Stretches begin half a period before the events, so that no event lies on an edge.
    middle = (left + width / 2) * period / parts
    offset = (middle - period / 2) % period
    starts = offset + period * np.arange(-1, int(count / period) + 1)
    bounds = np.rint(starts).astype(np.int64)
    hits = total = 0
    reach = max(width * period / parts / 2, 1.0) + 0.5
    for start, first in zip(starts.tolist(), bounds.tolist(), strict=True):
        last = round(start + period)
        if first < 0 or last > count:
            continue
        stretch = series[first:last]
        if stretch.max() <= stretch.min():
            continue
        total += 1
        place = first + int(stretch.argmax()) + 0.5
        hits += abs(place - (start + period / 2)) <= reach
    if total < LEAST_PERIODS - 1 or hits < LEAST_KEPT * total:
        return None
    each = min((2 * reach + 1) / period, 0.9)
    tried = tests * count * period / 2
    certainty = -_log_binomial_tail(hits, total, each) - math.log(tried / CHANCE)
    if certainty <= 0:
        return None
    return Beat(period, (left * period / parts) % period, width * period / parts, certainty, hits / total)


def _placed(series: Float, beat: Beat) -> Beat:
    """Return the rhythm with the period, phase and width whose events fit the series best (correlation)."""
    values = np.clip(series, -LEAST_BEYOND, MOST_BEYOND)
    values = values - values.mean()
    count = len(series)
    turns = count / beat.period
    best, most = beat, -math.inf
    for width in (beat.width * np.array([1.0, 0.75, 1.25, 0.5, 1.5])).tolist():
        for period in (beat.period + np.linspace(-1, 1, 9) * max(beat.width, 1.0) / turns).tolist():
            for shift in (np.linspace(-1, 1, 13) * max(beat.width, 1.0)).tolist():
                # The middle of the run stays in its place while the period is tried.
                first = beat.first + shift + (beat.width - width) / 2 - (period - beat.period) * turns / 2
                share = overlaps(count, period, first, width)
                fit = float(values @ share) / math.sqrt(max(float(((share - share.mean()) ** 2).sum()), 1e-300))
                if fit > most + 1e-9:
                    best, most = replace(beat, period=period, first=first % period, width=width), fit
    return best


def _log_binomial_tail(hits: int, total: int, each: float) -> float:
    """Return the natural logarithm of the chance of at least so many hits."""
    terms = [
        math.lgamma(total + 1)
        - math.lgamma(k + 1)
        - math.lgamma(total - k + 1)
        + k * math.log(each)
        + (total - k) * math.log1p(-each)
        for k in range(hits, total + 1)
    ]
    top = max(terms)
    return top + math.log(sum(math.exp(term - top) for term in terms))


def _fundamental(series: Float, beat: Beat, tests: int) -> Beat:
    """Return the rhythm of the true period: a multiple where only every second or third event is there, a part where all are.

    A part of the period is taken only if its fold holds by itself: each of its stretches has its event. A multiple is taken where
    events of one of its stretches are far stronger than those of the others.
    """
    best = beat
    for part in range(2, 7):
        if beat.period / part < LEAST_WINDOWS:
            break
        finer = _fold(series, _refined(series, beat.period / part), tests)
        if finer is not None and finer.kept >= 0.9 * beat.kept and _even(series, finer):
            best = finer
    for multiple in (2, 3):
        if _even(series, best, multiple):
            continue
        coarser = _fold(series, _refined(series, best.period * multiple), tests)
        if coarser is not None:
            return coarser
    return best


def _even(series: Float, beat: Beat, most: int = 3) -> bool:
    """Return whether events are about as strong in each of the first, second (and third) of `most` stretches after another."""
    strength = _strengths(series, beat)
    for multiple in range(2, most + 1):
        classes = [float(np.median(strength[first::multiple])) for first in range(multiple) if len(strength[first::multiple])]
        if min(classes) < max(classes) / 3:
            return False
    return True


def _strengths(series: Float, beat: Beat) -> Float:
    """Return the strongest window of each event above what is usual around it."""
    count = len(series)
    out = []
    start = beat.first
    while start < count:
        first, last = max(int(start), 0), min(math.ceil(start + beat.width), count)
        if last > first:
            around = series[max(int(start - beat.period / 2), 0) : min(int(start + beat.period), count)]
            out.append(float(series[first:last].max() - np.median(around)))
        start += beat.period
    return np.array(out)


def _all_have(values: Float, members: Int, beat: Beat) -> bool:
    """Return whether each of the members is slower in the windows of the events, by a good part of what all are."""
    inside = beat.windows(values.shape[1])
    with np.errstate(all="ignore"):
        contrast = of_known.mean(values[members][:, inside], axis=1) - of_known.mean(values[members][:, ~inside], axis=1)
    return bool((contrast >= max(APART * float(of_known.mean(contrast)), 0.5)).all())


def _claim(ground: Ground, together: Together, beat: Beat, measure: str, span: slice) -> Claim | None:
    """Return the claim of a rhythm, with how slow its windows are against all others; None where that is hardly slower."""
    inside = np.zeros(ground.shape[1], np.bool_)
    inside[span] = beat.windows(span.stop - span.start)
    during, else_ = np.flatnonzero(inside), np.flatnonzero(~inside & ground.whole)
    source = {"p50": ground.p50_ns, "p99": ground.p99_ns}.get(measure)
    missing = 0.0
    if source is None:
        usual = np.median(ground.samples[together.members][:, else_], axis=1)
        lost = np.maximum(usual[:, None] - ground.samples[together.members][:, during], 0)
        missing = float(lost.sum())
        times = float(usual.sum() * len(during) / max(float(ground.samples[together.members][:, during].sum()), 1.0))
        value = None
        if times < LEAST_TIMES:
            return None
    else:
        with np.errstate(all="ignore"):
            slow = float(of_known.median(source[together.members][:, during]))
            usual_ns = float(of_known.median(source[together.members][:, else_]))
        times, value = slow / usual_ns if usual_ns > 0 else math.inf, slow
        if not times >= LEAST_TIMES:
            return None
    cells = np.zeros(ground.shape, np.bool_)
    cells[np.ix_(together.members, during)] = True
    step = ground.step_ns
    first_ns = int(ground.start_ns[0] + (span.start + beat.first) * step)
    with np.errstate(all="ignore"):
        low = float(of_known.least(ground.p50_ns[cells])) if cells.any() else 0.0
        high = float(of_known.most(ground.top_ns[cells])) if cells.any() else 0.0
    return Claim(
        kind=RHYTHM,
        who=together.who,
        start_ns=int(ground.start_ns[0]),
        end_ns=int(ground.start_ns[-1]) + step,
        cells=cells,
        value_ns=value,
        times=times,
        samples=int(ground.samples[cells].sum()),
        missing=missing,
        certainty=beat.certainty,
        latency_ns=None if math.isnan(low) else (int(low), int(high)),
        details={
            "measure": measure,
            "period_ns": beat.period * step,
            "first_ns": first_ns,
            "width_ns": beat.width * step,
            "kept": beat.kept,
        },
    )
