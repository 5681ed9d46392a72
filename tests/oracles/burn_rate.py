"""When an error budget burns too fast: plain loops after docs/guides/check.md and chapter 5 of the SRE workbook."""

from __future__ import annotations

from fractions import Fraction

PAIRS = ((720, Fraction("14.4")), (120, Fraction(6)), (10, Fraction(3)))


def burn_rate(bad: list[int], every: list[int], share: Fraction, end: int, windows: int) -> Fraction:
    """Return the burn rate of the windows up to `end`, those before the first without anything bad."""
    first = max(end + 1 - windows, 0)
    total = sum(every[first : end + 1])
    rate = Fraction(sum(bad[first : end + 1]), total) / share if total else Fraction(0)
    return rate * min(Fraction(end + 1, windows), 1)


def alerts(bad: list[int], every: list[int], share: Fraction, period: int) -> tuple[list[tuple[int, int, bool]], int | None]:
    """Return the first and last window of each alert and whether it goes on, and the window at whose end the budget is gone."""
    begins, lasts, gone = [], [], None
    for end in range(len(bad)):
        begin = last = False
        for part, factor in PAIRS:
            long, short = period // part, period // part // 12
            if not short:
                continue
            worse = sum(1 for at in range(max(end + 1 - long, 0), end + 1) if bad[at] > share * every[at])
            fast = burn_rate(bad, every, share, end, long) >= factor and worse >= 10 + 3 * share * long
            last |= fast
            begin |= fast and burn_rate(bad, every, share, end, short) >= factor
        used = burn_rate(bad, every, share, end, period)
        slow = used >= Fraction(3, 4) and burn_rate(bad, every, share, end, max(period // 10, 1)) >= 1
        begins.append(begin or slow)
        lasts.append(last or slow)
        if used > 1 and gone is None:
            gone = end
    found: list[tuple[int, int, bool]] = []
    low = 0
    while low < len(lasts):
        if not lasts[low]:
            low += 1
            continue
        high = next((at for at in range(low, len(lasts)) if not lasts[at]), len(lasts))
        inside = [at for at in range(low, high) if begins[at]]
        if inside:
            found.append((inside[0], high - 1, high == len(lasts)))
        low = high
    return found, gone
