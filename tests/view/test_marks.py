"""Marks in reports, pictures and stores: from files, SQLite and Elasticsearch the same, drawn where they are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import InputError
from ingest.core.marks import Mark
from ingest.core.units import Instant
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.store import open_store
from ingest.view import pictures, vega
from ingest.view.page.panels import marks as mark_section
from ingest.view.page.report import parts_from, run_names
from tests.databases import rows_in
from tests.store.grounds import grounds, loaded

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
GC = ROOT / "tests" / "data" / "gc"
SECOND = 10**9
START = 1795208404 * SECOND
LINES = """time,end,text
2026-11-20T21:00:34Z,,osd.3 down
2026-11-20T21:00:34Z,2026-11-20T21:00:49Z,"recovery, two pools"
+70s,,client upgrade begins
2026-11-20T20:00:00Z,2026-11-20T21:00:05Z,deployment
2026-11-20T20:00:00Z,2026-11-20T20:00:05Z,long before
2026-11-21T20:00:00Z,,long after
"""
PAUSE = (
    "[2026-11-20T21:00:{:02d}.500+0000][0.1s][info][gc] GC({}) Pause Young (Normal) (G1 Evacuation Pause) 6M->6M(64M) {}.000ms\n"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("marks")
    (folder / "my.csv").write_text(LINES)
    (folder / "gc.log").write_text("".join(PAUSE.format(second, second, 10 * second) for second in range(10, 50)))
    return [folder / "my.csv", folder / "gc.log"]


def words(paths: list[Path]) -> list[str]:
    return [word for path in paths for word in ("--marks", str(path))]


def shown(page: str) -> dict:
    """What the page's script unpacks."""
    from tests.view.test_report import unpacked

    return unpacked(page)


def plain(marks: list[dict]) -> list[tuple]:
    return sorted(((mark["t"], mark.get("t2"), mark["text"]) for mark in marks), key=lambda one: (one[0], one[2]))


def reported(tmp_path: Path, *more: str) -> dict:
    path = tmp_path / "report.html"
    assert command(["report", *more, "-o", str(path)]) == 0
    return shown(path.read_text())


@pytest.fixture(scope="module")
def of_files(files, tmp_path_factory) -> dict:
    pytest.importorskip("vl_convert")
    return reported(tmp_path_factory.mktemp("report"), str(EXAMPLE), *words(files))


def test_a_report_of_files_holds_what_overlaps_the_run(of_files) -> None:
    told = plain(of_files["marks"])
    begin = START / 1e6
    assert [one for one in told if not one[2].startswith("GC")] == [
        ((START - 3604 * SECOND) / 1e6, begin + 1000, "deployment"),
        (begin + 30_000, None, "osd.3 down"),
        (begin + 30_000, begin + 45_000, "recovery, two pools"),
        (of_files["runs"][0]["start"] + 70_000, None, "client upgrade begins"),
    ]
    pauses = [one for one in told if one[2].startswith("GC")]
    assert len(pauses) == 40
    for place, (t, t2, text) in enumerate(pauses, 10):
        end = begin + 1000 * (place - 4) + 500
        assert (t2, t2 - t) == (end, pytest.approx(10 * place, abs=1e-3))
        assert text.endswith(f"GC({place}), gc.log")
    assert "marks" in of_files["sections"]


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("how", ["load", pytest.param("mark", marks=pytest.mark.soak), "mark twice"])
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_files_and_both_stores_have_the_same_marks(of_files, files, tmp_path: Path, kind: str, how: str) -> None:
    with grounds(kind, tmp_path) as ground:
        if how == "load":
            assert command(["load", str(EXAMPLE), "--run", "r", "--store", ground.url, *words(files)]) == 0
        else:
            loaded(ground.url, [EXAMPLE])
            for _ in range(how.count("twice") + 1):
                assert command(["mark", "--run", "*", "--store", ground.url, *words(files)]) == 0
        assert plain(reported(tmp_path, ground.url)["marks"]) == plain(of_files["marks"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_marks_of_files_are_drawn_beside_those_of_a_store_and_not_kept(of_files, files, tmp_path: Path, kind: str) -> None:
    with grounds(kind, tmp_path) as ground:
        loaded(ground.url, [EXAMPLE])
        assert command(["mark", "--run", "*", "--store", ground.url, "--marks", str(files[0])]) == 0
        assert plain(reported(tmp_path, ground.url, *words(files))["marks"]) == plain(of_files["marks"])
        with open_store(ground.url) as store:
            assert len(store.marks_of([record.run for record in store.runs()])) == 4


@pytest.mark.slow
def test_marks_have_ends_in_every_store_and_the_same_again_is_one(tmp_path: Path) -> None:
    for kind in ("sqlite", "double"):
        with grounds(kind, tmp_path) as ground:
            loaded(ground.url, [EXAMPLE])
            with open_store(ground.url, write=True) as store:
                run = store.runs()[0].run
                store.mark(run, 5, "a")
                store.mark(run, 5, "a", 9)
                store.mark_all(
                    run, [{"at_ns": 3, "text": "b", "end_ns": 3}, {"at_ns": 4, "text": "c"}, {"at_ns": 4, "text": "c"}]
                )
                store.mark_all(run, [])
                assert store.marks_of([run]) == [
                    {"run": run, "at_ns": 3, "text": "b", "end_ns": 3},
                    {"run": run, "at_ns": 4, "text": "c"},
                    {"run": run, "at_ns": 5, "text": "a", "end_ns": 9},
                ]


@pytest.mark.slow
def test_a_server_that_was_set_up_before_marks_had_an_end(tmp_path: Path, capsys) -> None:
    """Notes without an end are taken; one with an end is refused with what to do, which then helps."""
    with grounds("double", tmp_path) as ground:
        loaded(ground.url, [EXAMPLE])
        index = f"{ground.prefix}-marks"
        ground.client.indices.delete(index=index, ignore_unavailable=True)
        name = f"{ground.prefix}-marks-mappings"
        there = ground.client.cluster.get_component_template(name=name)["component_templates"][0]["component_template"]
        known = there["template"]["mappings"]["properties"]
        known["mark"]["properties"] = {"at_ns": known["mark"]["properties"]["at_ns"]}
        ground.client.cluster.put_component_template(name=name, template=there["template"], version=2, meta=there["_meta"])
        mark = ["mark", "--run", "*", "--at", "+1s", "--store", ground.url]
        assert command([*mark, "a note"]) == 0
        capsys.readouterr()
        assert command([*mark, "--end", "+2s", "recovery"]) == 4
        told = capsys.readouterr().err
        assert "was set up before marks had an end: tailboard store setup --elasticsearch" in told
        words = ["setup", "--elasticsearch", ground.url.split("?")[0], "--index-prefix", ground.prefix, "--overwrite"]
        assert command(words) == 0, capsys.readouterr().err
        assert command([*mark, "--end", "+2s", "recovery"]) == 0, capsys.readouterr().err
        with open_store(ground.url) as store:
            assert [one["text"] for one in store.marks_of([store.runs()[0].run])] == ["a note", "recovery"]


def test_how_many_marks_are_of_no_run_is_said(files, tmp_path: Path, capsys) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", store, *words(files)]) == 0
    told = capsys.readouterr().err
    assert re.search(r"r/\S+: 44 marks\n", told)
    assert "2 of 46 marks lie outside the times of the runs and are left out" in told
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", store, *words(files)]) == 0
    assert rows_in(tmp_path / "s.db", "SELECT count(*) FROM marks")[0] == (44,)


def test_a_bad_file_of_marks_ends_a_load_before_it_begins(tmp_path: Path, capsys) -> None:
    store = tmp_path / "s.db"
    call = ["load", str(EXAMPLE), "--run", "r", "--store", f"sqlite:{store}", "--marks", str(GC / "uptime.log")]
    assert command(call) == 3
    assert "its lines have no clock time" in capsys.readouterr().err
    assert not store.exists()


def test_words_that_do_not_fit(files, capsys) -> None:
    store = "sqlite:never.db"
    for call, told in (
        (["mark", "--run", "r", "x", "--marks", str(files[0]), "--store", store], "leave out TEXT"),
        (["mark", "--run", "r", "--at", "+1s", "--marks", str(files[0]), "--store", store], "leave out TEXT"),
        (["mark", "--run", "r", "x", "--store", store], "needs --at T and its text"),
        (["mark", "--run", "r", "--at", "+2s", "--end", "+1s", "x", "--store", store], "it ends before it begins"),
        (["mark", "--run", "r", "--at", "9999-01-01", "x", "--store", store], "outside of the years 1824 to 2115"),
        (["percentiles", str(EXAMPLE), "--marks", str(files[0])], "--marks draws: choose --format png or svg"),
    ):
        assert command(call) == 2
        assert told in capsys.readouterr().err


def test_a_run_without_a_time_zero_takes_only_marks_from_its_start(tmp_path: Path, capsys) -> None:
    pytest.importorskip("vl_convert")
    log = next(path for path in (ROOT / "tests" / "data" / "fio").rglob("*_clat_hist.1.log"))
    shutil.copy(log, tmp_path / "lone_clat_hist.1.log")
    (tmp_path / "my.csv").write_text("2026-11-20T21:00:34Z,of a clock\n")
    call = [str(tmp_path / "lone_clat_hist.1.log"), "--marks", str(tmp_path / "my.csv")]

    def texts(content) -> list[str]:
        """Return the marks of a page, without the band of the last interval, which only fio's JSON would have."""
        return [one["text"] for one in content["marks"] if one["text"] != "samples are missing"]

    content = reported(tmp_path, *call)
    assert content["runs"][0]["relative"] and texts(content) == []
    assert "none of the 1 marks of --marks is shown: the start of the run is not known" in (tmp_path / "report.html").read_text()
    (tmp_path / "my.csv").write_text("2026-11-20T21:00:34Z,of a clock\n+1s,from the start\n")
    assert texts(reported(tmp_path, *call)) == ["from the start"]
    store = f"sqlite:{tmp_path / 's.db'}"
    assert command(["load", call[0], "--run", "r", "--store", store, *call[1:]]) == 0
    assert "1 of 2 marks lie outside the times of the runs and are left out (a run has no start time" in capsys.readouterr().err
    assert texts(reported(tmp_path, store)) == ["from the start"]


def test_marks_of_a_file_go_to_the_runs_that_they_overlap() -> None:
    runs = [mark_section.Shown("a", 100, 200), mark_section.Shown("b", 150, 300)]
    given = [Mark(Instant(at), str(at)) for at in (99, 100, 150, 200, 201, 300, 301)] + [
        Mark(Instant(5, True), "+5", Instant(20, True))
    ]
    found = mark_section.chosen(runs, [{"run": "a", "at_ns": 7, "text": "stored"}], given)
    told: dict[str, list[str]] = {}
    for one in found.marks:
        told.setdefault(one["run"], []).append(one["text"])
    assert told == {"a": ["stored", "100", "+5", "150", "200"], "b": ["150", "+5", "200", "201", "300"]}
    assert (found.outside, found.given, found.left, found.notes) == (2, 8, 0, [])


def test_a_page_holds_so_many_marks_and_says_how_many_more_there_are(monkeypatch) -> None:
    monkeypatch.setattr(mark_section, "MOST_ON_PAGE", 5)
    given = [Mark(Instant(one), f"m{one}", Instant(one + one % 7)) for one in range(20)] + [Mark(Instant(3), "note")]
    found = mark_section.chosen([mark_section.Shown("r", 0, 50)], [], given)
    assert sorted(one.get("end_ns", 99) - one["at_ns"] if "end_ns" in one else -1 for one in found.marks) == [-1, 5, 6, 6, 5][
        :1
    ] + [5, 5, 6, 6]
    assert found.notes == ["the page holds 5 marks, those that lasted longest; 16 more are left out"]


def test_labels_of_marks_are_no_markup(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    (tmp_path / "my.csv").write_text("+1s,</script><img src=x onerror=alert(1)>\n")
    assert command(["report", str(EXAMPLE), "--marks", str(tmp_path / "my.csv"), "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "<img src=x" not in page and "&lt;img src=x" in page


@pytest.mark.slow
def test_pictures_draw_marks_of_files_and_stores(files, tmp_path: Path, capfdbinary) -> None:
    pytest.importorskip("vl_convert")
    store = f"sqlite:{tmp_path / 's.db'}"
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", store, *words(files)]) == 0
    capfdbinary.readouterr()
    drawn = []
    for call in ([str(EXAMPLE), *words(files)], [store]):
        assert command(["percentiles", *call, "--format", "svg"]) == 0
        drawn.append(capfdbinary.readouterr().out.decode())
    texts = [re.findall(r"<text[^>]*>([^<]*)</text>", svg) for svg in drawn]
    assert "recovery, two pools" in texts[0] and "osd.3 down" in texts[0]
    bands = [len(re.findall(r'fill="#7c5cf0"', svg)) for svg in drawn]
    assert bands[0] == bands[1] > 80


@pytest.mark.slow
def test_a_picture_draws_a_band_from_when_to_when() -> None:
    answer = Files([EXAMPLE]).answer(Question(step=SECOND))
    marks = [{"at_ns": START, "text": "a", "end_ns": START + SECOND}, {"at_ns": START, "text": "b"}] * 2
    spec = pictures.percentiles_picture(answer, [vega.HIGHEST], marks=marks)
    (table,) = (entry["values"] for entry in spec["data"] if entry["name"] == "marks")
    assert table == [{"t": START / 1e6, "t2": START / 1e6 + 1000, "text": "a"}, {"t": START / 1e6, "t2": None, "text": "b"}]


def test_marks_are_exported_as_documents_with_their_ends(files, tmp_path: Path, capfd) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", store, *words(files)]) == 0
    capfd.readouterr()
    assert command(["export", store, "--format", "documents"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    found = [body for action, body in zip(lines[::2], lines[1::2], strict=True) if action["index"]["_index"].endswith("-marks")]
    assert len(found) == 44
    (one,) = (body for body in found if body["text"] == "recovery, two pools")
    at = START + 30 * SECOND
    assert one["mark"] == {"at_ns": at, "end_ns": at + 15 * SECOND, "duration_ns": 15 * SECOND}


def test_nothing_selected_is_still_an_error(files) -> None:
    source = Files([EXAMPLE])
    with pytest.raises(InputError):
        parts_from(source, run_names(source), Question(runs=("none",)), given=[Mark(Instant(1), "x")])
