"""Layers: what timed an operation (client, service, device). Samples of unlike layers are never added up; explain looks below the client."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ingest.core.errors import StoreError, UsageError
from ingest.core.labels import default_kind, in_layer, kind_preference, layer_of
from ingest.core.layout import Edges, fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.query.story.below import _bounds
from ingest.query.story.story import story
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.text import csv_lines
from tests.commands import tailboard
from tests.effort import figure
from tests.layered import DISKS, RATE, SECONDS, START, layered
from tests.store.grounds import grounds

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, no package

from layers import DEVICE, SERVICE, said_of
from made_clusters import cluster, local_disks

WANTED = Wanted(parse_percentiles("50,99"))


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    return layered(tmp_path_factory.mktemp("layers"))


def options(**words) -> ReadOptions:
    return ReadOptions(t0=START * 10**9, fio_version=(3, 33), **words)


def rows(origin, question: Question) -> list[str]:
    return list(csv_lines(percentiles(origin.answer(question), WANTED)))


def numbers(lines: list[str]) -> list[list[str]]:
    """Return the cells of rows without edges of time and rates: the range of a run is that of all its layers."""
    names = lines[0].split(",")
    kept = [place for place, name in enumerate(names) if name not in ("start", "end", "rate", "layer")]
    return [[line.split(",")[place] for place in kept] for line in lines]


def test_the_servers_operations_are_not_taken_for_the_clients(logs: Path) -> None:
    """A run of fio's log and Ceph's polls was answered with the OSD's operations alone: their kind came before fio's."""
    both, alone = Files([logs], options(), 1), Files([logs / "fio_clat.1.log"], options(), 1)
    for question in (Question(step="all"), Question(step=10**9), Question(by=("op",), step=3 * 10**9), Question()):
        assert numbers(rows(both, question)) == numbers(rows(alone, question))
    answer = both.answer(Question(step="all"))
    assert answer.latency == "completion latency of the client layer" and answer.layers == ("client", "service")
    assert [text for text in answer.warnings if "--by layer" in text]
    plain = alone.answer(Question(step="all"))
    assert plain.latency == "completion latency" and not [text for text in plain.warnings if "layer" in text]


def test_layers_asked_for_stand_beside_one_another_in_their_own_bins(logs: Path) -> None:
    both, osd = Files([logs], options(), 1), Files([logs / "osd.ndjson"], options(), 1)
    told = rows(both, Question(by=("layer",), step="all"))
    assert [line.split(",")[2] for line in told] == ["layer", "service", "client"]  # in order of time: the first poll came first
    service, client = numbers(told)[1:]
    alone = Files([logs / "fio_clat.1.log"], options(), 1)
    assert client == numbers(rows(alone, Question(step="all")))[1], "fio's bins, not the OSD's octaves"
    assert service == numbers(rows(osd, Question(step="all")))[1]
    assert numbers(rows(both, Question(where={"layer": "service"}, step="all")))[1] == service
    by_kind = rows(both, Question(by=("kind",), step="all"))
    assert [line.split(",")[2] for line in by_kind[1:]] == ["service:service", "completion"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_stores_keep_layers_apart_as_files_do(kind: str, logs: Path, tmp_path: Path) -> None:
    files = Files([logs], options(), 1)
    with grounds(kind, tmp_path) as ground:
        with open_store(ground.url, write=True) as store:
            load([logs], store, LoadOptions(options(run="run"), jobs=1))
            described = description_of(str(logs.parent / "disks" / "disks.yml"))
            load([logs.parent / "disks"], store, LoadOptions(options(run="run", description=described), jobs=1))
        with open_store(ground.url) as store:
            assert numbers(rows(store, Question(step=10**9))) == numbers(rows(files, Question(step=10**9)))
            for layer in ("client", "service"):
                asked = Question(where={"layer": layer}, by=("host", "op"), step=10**9)
                assert numbers(rows(store, asked)) == numbers(rows(files, asked))
            told = rows(store, Question(by=("layer",), step="all"))
            assert sorted(line.split(",")[2:4] for line in told[1:]) == [
                ["client", str(SECONDS * RATE)],
                ["device", str(SECONDS * (RATE // 2 + RATE // 4))],
                ["service", str(SECONDS * RATE)],
            ]
            by_volume = store.answer(Question(by=("volume", "layer"), step="all"))
            assert {key for part in by_volume.parts for key in part.table} == {
                ("", "client"),
                ("osd.0", "service"),
                ("sdb", "device"),
            }


def goes_on(polls: Path, seconds: int) -> None:
    """Let the polls of a server go on for so many seconds without operations."""
    known = [json.loads(line) for line in polls.read_text().splitlines()]
    late = [{**known[-1], "sampled_at": known[-1]["sampled_at"] + second} for second in range(1, seconds + 1)]
    polls.write_text("".join(json.dumps(poll) + "\n" for poll in [*known, *late]))


def test_headings_add_no_layers_up(logs: Path, tmp_path: Path) -> None:
    """The clients' operations are the OSD's, too: 960 samples were said of 480 operations."""
    store = f"sqlite:{tmp_path / 's.db'}"
    with open_store(store, write=True) as opened:
        load([logs], opened, LoadOptions(options(run="run"), jobs=1))
    for command, *words in (("trend", "--run", "run"), ("percentiles",)):
        told = tailboard(command, store, *words, "--by", "layer").stdout
        assert "client 480, service 480 samples" in told, told[:300]
        assert "480 samples" in (alone := tailboard(command, store, *words).stdout) and "client 480" not in alone


def test_files_that_are_asked_directly_are_of_the_layer_that_is_said(logs: Path) -> None:
    log, words = logs / "fio_clat.1.log", ("--t0", START, "--fio-version", "3.33", "--step", "all", "--format", "csv")
    told = tailboard("percentiles", log, *words, "--by", "layer", "--label", "layer=device").stdout.splitlines()
    plain = tailboard("percentiles", log, *words).stdout.splitlines()
    assert numbers(told) == numbers(plain) and told[1].split(",")[2] == "device"
    log = Path(__file__).parents[1] / "data" / "hdr" / "2.1.12-2-digits.hlog"
    words = ("--recorded-unit", "us", "--by", "kind", "--step", "all", "--format", "csv")
    told = tailboard("percentiles", log, "--label", "layer=service", *words).stdout
    assert all(line.split(",")[2].startswith("service:") for line in told.splitlines()[1:]) and told.count("\n") > 1
    for label, said in (("layer=disk", "no layer 'disk'"), ("depth=3", "takes layer=..., not depth")):
        wrong = tailboard("percentiles", log, "--label", label)
        assert wrong.returncode == 2 and said in wrong.stderr


@pytest.mark.parametrize(
    "words", [("--by", "layer"), ("--where", "layer=client"), ("--where", "layer!=device"), ("--highlight", "layer=device")]
)
def test_single_events_know_no_layer_and_say_so(words: tuple[str, ...], logs: Path) -> None:
    wrong = tailboard("offsets", logs, "--t0", START, "--fio-version", "3.33", *words)
    assert wrong.returncode == 2 and "single events are kept without their layer" in wrong.stderr


def test_runs_that_are_added_up_keep_their_layers(logs: Path, tmp_path: Path) -> None:
    """Each run's default layer is another: their samples are not one distribution."""
    for name, path in (("a", logs / "fio_clat.1.log"), ("b", logs / "osd.ndjson")):
        (tmp_path / name).mkdir()
        (tmp_path / name / path.name).write_bytes(path.read_bytes())
    url = f"sqlite:{tmp_path / 's.db'}"
    with open_store(url, write=True) as store:
        for name in ("a", "b"):
            load([tmp_path / name], store, LoadOptions(options(run=name), jobs=1))
    with open_store(url) as store:
        answer = store.answer(Question(merge_runs=True, step="all"))
    assert answer.by == ("layer",) and {key for part in answer.parts for key in part.table} == {("client",), ("service",)}


def test_a_load_says_the_layer_of_its_files(logs: Path, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    log = logs / "fio_clat.1.log"
    words = ("--run", "r", "--store", store, "--t0", START, "--fio-version", "3.33")
    wrong = tailboard("load", log, *words, "--label", "layer=devise")
    assert wrong.returncode == 2 and "no layer 'devise'" in wrong.stderr and "device" in wrong.stderr
    assert tailboard("load", log, *words, "--label", "layer=device").returncode == 0
    told = tailboard("percentiles", store, "--by", "layer,kind", "--step", "all", "--format", "csv").stdout.splitlines()
    assert told[1].split(",")[2:5] == ["device", "device:completion", str(SECONDS * RATE)]
    again = json.loads(tailboard("load", log, *words, "--json").stdout)
    assert again["documents"] == 0 and again["duplicate"], "the same content is counted once, whatever its layer"


@pytest.mark.parametrize("first", ["fio_clat.1.log", "osd.ndjson"])
def test_layers_are_loaded_one_after_another_each_with_its_own_options(first: str, logs: Path, tmp_path: Path) -> None:
    """Polls bear real times and a description is that of its files: neither is the fio log's --t0."""
    url, (second,) = f"sqlite:{tmp_path / 's.db'}", {"fio_clat.1.log", "osd.ndjson"} - {first}
    described = ReadOptions(run="r", description=description_of(str(logs.parent / "disks" / "disks.yml")))
    with open_store(url, write=True) as store:
        for name in (first, second):
            load([logs / name], store, LoadOptions(options(run="r") if name.startswith("fio") else ReadOptions(run="r"), jobs=1))
        load([logs.parent / "disks" / "disks.ndjson"], store, LoadOptions(described, jobs=1))
        if first.startswith("fio"):  # what the run's first load says of logs holds for those that come later
            with pytest.raises(StoreError, match="another reading options"):
                load([logs / "fio_clat.1.log"], store, LoadOptions(ReadOptions(run="r", t0=1, fio_version=(3, 33)), jobs=1))
    with open_store(url) as store:
        assert store.answer(Question(step="all")).layers == ("client", "service", "device")


def test_a_description_names_one_of_the_layers(tmp_path: Path) -> None:
    path = tmp_path / "disks.yml"
    path.write_text(DISKS)
    assert description_of(str(path)).kind == "device:service"
    for wrong in ("=disk", "device"):
        path.write_text(DISKS.replace("=device", wrong))
        with pytest.raises(UsageError, match="label layer takes =client, =service, =device"):
            description_of(str(path))


def test_a_kind_bears_its_layer_and_the_clients_comes_first() -> None:
    kinds = ["service:response", "device:completion", "completion", "total"]
    assert default_kind(kinds) == "total" and default_kind(kinds[:2]) == "service:response"
    assert [layer_of(kind) for kind in kinds] == ["service", "device", "client", "client"]
    assert in_layer("service:service", "device") == "device:service" and in_layer("device:total.mean", "client") == "total.mean"
    assert layer_of("a:b") == "client", "a kind of a user's own with a colon"
    assert kind_preference("service:completion.mean") < kind_preference("completion.mean")


LAYOUTS = (fio_layout(12, 1), Edges((0, *(100 << step for step in range(12))), open_ended=False))


@given(some.sampled_from(LAYOUTS), some.data())
@settings(max_examples=figure(25, 200), deadline=None)
def test_the_bounds_hold_whatever_the_latencies_were(layout, data) -> None:
    """What samples truly took longer than as many of the reference lies within the bounds that their bins leave."""
    top = int(layout.edges[-1]) - 1
    own, reference = (
        np.sort(data.draw(some.lists(some.integers(0, min(top, 100_000)), min_size=size, max_size=size))) for size in (12, 6)
    )
    truth = float(np.maximum(own - np.repeat(reference, 2), 0).sum())  # quantile against quantile
    counts, typical = (np.bincount(layout.index(values.astype(np.int64)), minlength=layout.bins) for values in (own, reference))
    least, most = _bounds(counts, typical, layout)
    assert least - 1e-6 <= truth <= most + 1e-6
    assert _bounds(counts, counts, layout)[0] == 0, "nothing is known to be slower than itself"


@pytest.mark.parametrize(
    ("cause", "service", "device"),
    [
        ("disk", "named", "named"),
        pytest.param("osd", "named", "cannot tell", marks=pytest.mark.slow),
        ("network", "not seen", "not seen"),
        ("within", "cannot tell", "cannot tell"),
        pytest.param("all", "cannot tell", "cannot tell", marks=pytest.mark.slow),
        ("no service data", "cannot tell", "named"),
        pytest.param("no device data", "named", "cannot tell", marks=pytest.mark.slow),
        ("quiet", "no finding", "no finding"),
    ],
)
def test_explain_says_where_below_the_client_it_was_slow(cause: str, service: str, device: str) -> None:
    """In 19 of 20 seeds, none of which anything was tuned on: 40 in soak, and in benchmarks/layers.py."""
    runs = figure(1, 3, 40)
    said = [said_of(cluster(cause, 60_000 + seed)) for seed in range(runs)]
    assert not [each.wrong for each in said if each.wrong]
    allowed = runs // 20
    for layer, verdict in ((SERVICE, service), (DEVICE, device)):
        other = [(each.name, layer, getattr(each, layer)) for each in said if getattr(each, layer) != verdict]
        assert len(other) <= allowed, other


@pytest.mark.parametrize(("cause", "verdict"), [("disk", "named"), ("client", "not seen"), ("quiet", "no finding")])
def test_a_host_that_is_slow_throughout_is_held_against_others_below_it(cause: str, verdict: str) -> None:
    """Each host has a disk of its own: it is named where it is the slow one, and in no seed where it is not."""
    for seed in range(figure(2, 20, 100)):
        made = local_disks(cause, 70_000 + seed)
        below = [(finding.kind, each) for finding in story(made, Question()).findings for each in finding.below]
        if verdict == "no finding":
            assert not below
            continue
        [(kind, each)] = below
        host, _, disk = made.names[made.culprit]
        assert (kind, each.layer) == ("slow member", "device")
        assert each.verdict == ("seen" if verdict == "named" else verdict), (seed, each.text)
        assert each.members == (((host, disk, "", ""),) if verdict == "named" else ())
        assert (
            each.text == f"device: {disk} on {host} was slower than others throughout: {each.text.partition('throughout: ')[2]}"
        ) == (verdict == "named")


@pytest.mark.parametrize("lost", [0.3, pytest.param(0.9, marks=pytest.mark.slow)])
def test_a_disk_of_which_windows_are_lost_is_never_called_free_of_blame(lost: float) -> None:
    made = local_disks("client", 70_000)
    [rows] = made.lower
    kept = np.random.default_rng(7).random(len(rows)) >= lost
    told = story(replace(made, lower=(rows.take(np.flatnonzero(kept)),)), Question())
    assert [each.verdict for finding in told.findings for each in finding.below] == ["cannot tell"]
    assert "no data in some windows" in told.findings[0].below[0].text


def test_a_slow_client_of_shared_servers_accuses_none_of_them() -> None:
    """Its operations go to all OSDs, as those of the others do: nothing says which of theirs are its own."""
    for seed in range(figure(1, 5, 40)):
        told = story(cluster("client", 70_000 + seed), Question())
        [main] = [finding for finding in told.findings if finding.kind == "slow member"]
        assert dict(main.who) == {"host": "client0"} and [each.verdict for each in main.below] == ["cannot tell"] * 2
        assert not [each.members for finding in told.findings for each in finding.below if each.members]
        assert "nothing says which of its operations are those of this client" in main.below[0].text


def test_what_is_said_below_is_in_the_sentence_the_json_and_the_store(tmp_path: Path) -> None:
    from ingest.query.story.stored import documents_of, story_from

    made = cluster("disk", 60_000)
    told = story(made, Question())
    host, osd, disk = made.names[made.culprit]
    [main] = [finding for finding in told.findings if finding.below]
    assert main.text.endswith(f"Slow below it in the same windows: {osd} on {host} (service), {disk} on {host} (device).")
    assert [each["who"] for each in main.as_dict(0)["below"]] == [
        [{"host": host, "volume": osd}],
        [{"host": host, "volume": disk}],
    ]
    assert all(0.1 <= each.least <= each.most <= 1 for each in main.below)
    kept = json.loads(json.dumps([document.content for document in documents_of("synthetic", told, "now")]))
    documents = [
        type(document)(**{name: getattr(document, name) for name in document.__slots__} | {"content": content})
        for document, content in zip(documents_of("synthetic", told, "now"), kept, strict=True)
    ]
    again = story_from(documents, "now")
    assert again is not None
    assert [finding.below[0].text for finding in again.findings if finding.below] == [main.below[0].text]


def test_a_report_holds_each_layer_once(logs: Path) -> None:
    from ingest.query.overview import overviews
    from ingest.view.page.panels import layers
    from ingest.view.page.report import parts_of

    files = Files([logs], options(), 1)
    runs = overviews(files, files.run_names, Question())
    [section] = layers.sections(runs)
    [content] = section.content
    assert [(each["layer"], sum(each["n"])) for each in content["layers"]] == [
        ("client", SECONDS * RATE),
        ("service", SECONDS * RATE),
    ]
    for each in content["layers"]:  # the densities of a window, by the octaves that each cell is high, are all of it
        low = np.where(np.array(each["lower"]) > 0, each["lower"], np.array(each["upper"]) / 2)
        shares = np.array(each["share"]) * np.log2(np.array(each["upper"]) / low)
        windows = {at: shares[np.array(each["t"]) == at].sum() for at in set(each["t"])}
        assert all(abs(whole - 1) < 0.01 for whole in windows.values())
    assert "of the client, 480 samples" in parts_of(runs).filling["lead"]
    alone = Files([logs / "fio_clat.1.log"], options(), 1)
    assert layers.sections(overviews(alone, alone.run_names, Question())) == []


def test_a_bin_of_several_octaves_is_shaded_as_the_narrow_ones_it_would_be_made_of(tmp_path: Path) -> None:
    """A tool whose edges are decades: a tenth of the samples in a decade is 3 % of them for each factor of 2, not a tenth."""
    from ingest.view.page.panels.layers import layer_cells

    bins = [{"min": 10**power, "max": 10 ** (power + 1) - 1, "count": count} for power, count in ((1, 9), (2, 1), (3, 0))]
    (tmp_path / "disks.ndjson").write_text(json.dumps({"t": START, "host": "h", "disk": "sdb", "hist": bins}) + "\n")
    (tmp_path / "disks.yml").write_text(DISKS)
    described = ReadOptions(description=description_of(str(tmp_path / "disks.yml")))
    answer = Files([tmp_path / "disks.ndjson"], described, 1).answer(Question(by=("kind",), step="all"))
    found = layer_cells(answer, "device:service").columns
    assert list(zip(found["lower"], found["upper"], found["n"])) == [(10_000, 100_000, 9), (100_000, 1_000_000, 1)]
    assert found["share"] == pytest.approx([0.9 / np.log2(10), 0.1 / np.log2(10)], rel=0.005)


def test_what_bcc_prints_of_a_disk_is_of_the_device(tmp_path: Path) -> None:
    """`biolatency -T`, with and without -D; what names neither a disk nor what it traces may be of anything."""
    traced, other = "Tracing block device I/O... Hit Ctrl-C to end.\n", "Tracing run queue latency... Hit Ctrl-C to end.\n"
    device = "device:service"
    for begins, disk, kind in (
        (traced, "disk = 'sdb'\n", device),
        (traced, "", device),
        (other, "", "service"),
        ("", "", "service"),
    ):
        path = tmp_path / "out.txt"
        head = f"{begins}\n06:20:16\n"
        bars = "     usecs               : count     distribution\n        64 -> 127        : 0        |    |\n       128 -> 255        : 12       |****|\n"
        path.write_text(f"{head}{disk}{bars}\n06:20:17\n{disk}{bars}")
        answer = Files([path], ReadOptions(), 1).answer(Question(step="all"))
        assert answer.kind == kind and answer.samples == 24


@pytest.mark.parametrize("where", ["files", "sqlite"])
def test_a_layer_that_was_sampled_for_longer_makes_no_rate_of_the_others_lower(tmp_path: Path, where: str) -> None:
    """Polls go on before and after the clients: the rate of a whole run is of the time in which its layer was there."""
    folder = layered(tmp_path)
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(folder / "fio_clat.1.log", alone)
    goes_on(folder / "osd.ndjson", 119)
    reading = options()
    rates = {}
    for name, paths in (("with", folder), ("without", alone)):
        question = Question(step="all", by=("layer",) if name == "with" else ())
        if where == "files":
            answer = Files([paths], reading, jobs=1).answer(question)
        else:
            with open_store(f"sqlite:{tmp_path / name}.db", write=True) as store:
                load([paths], store, LoadOptions(read=reading, jobs=1))
                answer = store.answer(question)
        table = percentiles(answer, WANTED).columns
        rates[name] = dict(zip(table["layer"] if name == "with" else ["client"], table["rate"].tolist(), strict=True))
    assert rates["with"]["client"] == rates["without"]["client"]
    assert rates["with"]["service"] == pytest.approx(rates["with"]["client"] * SECONDS / (SECONDS + 119), rel=0.01)
