"""How the texts of options become values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.core.errors import UsageError
from ingest.core.plain import as_text

if TYPE_CHECKING:
    from ingest.cli.shared.options import Reading
    from ingest.read.delimited.description import Description
    from ingest.read.histograms.description import HistogramDescription
    from ingest.read.sources import ReadOptions

VERSION = r"^(fio-)?\d{1,3}\.\d{1,4}(\.\d{1,4})?(-.*)?$"
FREQUENCY = r"(?i)^(\d{1,12}(?:\.\d{1,9})?(?:e\d{1,2})?) ?(?:([kMG]?)Hz)?$"
HERTZ, FASTEST_HZ = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}, 9 * 10**9
RATE = r"^\d{1,12}(\.\d{1,9})?$"


def parse_step(text: str) -> int | str:
    """Return the step: ns, or the words auto and all."""
    from ingest.core.timing import parse_duration

    return text if text in ("auto", "all") else parse_duration(text)


def curve_files(hgrm: tuple[str, ...], sla: tuple[str, ...]) -> list[Any]:
    """Return the curves of files named as FILE:UNIT; UsageError where the unit is not said."""
    from ingest.core.timing import UNITS_NS
    from ingest.read.hgrm import read_hgrm, read_sla

    curves = []
    for texts, option, reader in ((hgrm, "--hgrm", read_hgrm), (sla, "--sla", read_sla)):
        for text in texts:
            name, _, unit = text.rpartition(":")
            if unit not in ("ns", "us", "ms", "s") or not name:
                raise UsageError(f"{option} {text}: the file does not say its unit: {text}:ms, for example")
            curves.append(reader(Path(name), UNITS_NS[unit]))
    return curves


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Return the pairs of repeated K=V options; UsageError if one has no `=`."""
    values = {}
    for text in map(as_text, texts):
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise UsageError(f"{option} takes NAME=VALUE, not {text!r}")
        values[name] = value
    return values


def read_options(reading: Reading, run: str = "") -> ReadOptions:
    """Return how files are read, as the options of a call say; UsageError for what cannot be."""
    from ingest.cli.shared.options import Loading
    from ingest.core.series import LAYER
    from ingest.core.timing import MOST_NS, UNITS_NS, parse_duration, parse_instant
    from ingest.read.layers import layer_named
    from ingest.read.sources import ReadOptions

    input_format, description = _format(str(reading.input_format)) if reading.input_format else ("", None)
    if reading.fio_version and not re.match(VERSION, reading.fio_version):
        raise UsageError(f"--fio-version takes what fio --version says, such as 3.33, not {reading.fio_version!r}")
    if reading.rate and (not re.match(RATE, reading.rate) or not float(reading.rate)):
        raise UsageError(f"--rate takes requests a second, such as 1000, not {reading.rate!r}")
    offsets = {}
    for name, text in pairs(reading.host_offset, "--host-offset").items():
        try:
            offsets[name] = round(float(text) * UNITS_NS["ms"])
        except (ValueError, OverflowError):
            offsets[name] = MOST_NS
        if abs(offsets[name]) >= MOST_NS:
            raise UsageError(f"--host-offset takes HOST=MS, not {name}={text}")
    labels = pairs(reading.labels, "--label")
    if not isinstance(reading, Loading) and (others := sorted(labels.keys() - {LAYER})):
        raise UsageError(f"--label of files that are not loaded takes layer=..., not {others[0]}: a load keeps labels of runs")
    return ReadOptions(
        run=as_text(run),
        input_format=input_format,
        host=as_text(reading.host or ""),
        host_alias=pairs(reading.host_alias, "--host-alias"),
        host_offset_ns=offsets,
        t0=reading.t0 if reading.t0 in (None, "mtime") else parse_instant(str(reading.t0)).ns,
        recorded_unit_ns=(UNITS_NS.get(unit) or parse_duration(unit)) if (unit := reading.recorded_unit) else None,
        expected_interval_ns=parse_duration(reading.expected_interval) if reading.expected_interval else 0,
        rate=reading.rate or "",
        intended_column=reading.intended_start_column or "",
        digits=reading.digits or 0,
        prefer=reading.prefer,
        keep_idle=reading.keep_idle,
        fio_version=tuple(int(part) for part in re.findall(r"\d+", reading.fio_version)[:3]) if reading.fio_version else None,
        description=description,
        layer=layer_named(labels[LAYER]) if LAYER in labels else "",
        tsc_hz=frequency(reading.tsc_hz) if reading.tsc_hz else 0,
    )


def _format(text: str) -> tuple[str, Description | HistogramDescription | None]:
    """Return the format that --input-format names, or what describes one; UsageError where it is neither."""
    from ingest.read.describing import description_of, is_described, presets
    from ingest.read.formats import names

    if is_described(text):
        return "", description_of(text)
    if text not in names():
        from ingest.core.nearest import choices

        known = [*names(), *presets()]
        choice = f"{choices(text, known, most=len(known))}, or a file that describes one (events.yml)"
        raise UsageError(f"no input format {text!r}: {choice}")
    return text, None


def frequency(text: str) -> int:
    """Return a frequency in Hz; UsageError unless it is one of a counter that runs at 1 MHz to 9 GHz."""
    match = re.match(FREQUENCY, text)
    hz = round(float(match[1]) * HERTZ[(match[2] or "").lower()]) if match else 0
    if not HERTZ["m"] <= hz <= FASTEST_HZ:
        raise UsageError(f"--tsc-hz takes a frequency from 1 MHz to 9 GHz, such as 2.6e9 or 2600MHz, not {text!r}")
    return hz
