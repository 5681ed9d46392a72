"""A client that CBT's settings name and of which nothing is here: every answer says so, for as long as it is so."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.quantiles import parse_percentiles
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.store.grounds import ElasticGround, grounds, loaded

CBT = Path(__file__).parents[1] / "data" / "cbt"
CODE = "client-without-logs"
RUN = "B/00000000/id-2b63de81/4krandomwrite/numjobs-001/total_iodepth-8"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return CBT's archive of three clients, with the logs of total_iodepth-8 only."""
    with tarfile.open(CBT / "B.tar.xz") as tar:
        wanted = [
            one for one in tar if one.name.endswith(".yaml") or ("total_iodepth-8/" in one.name and "collectl" not in one.name)
        ]
        tar.extractall(tmp_path, wanted, filter="data")
    return tmp_path / "B"


def folders_of(archive: Path, client: str) -> list[Path]:
    return sorted((archive / "results" / "00000000").glob(f"id-*/*.{client}.lab.test"))


def said(answer: Answer) -> list[str]:
    return [str(caveat) for caveat in answer.caveats if caveat.code == CODE]


def caveats(*paths: Path, **options: object) -> list[str]:
    found = discover(list(paths), ReadOptions(**options))  # type: ignore[arg-type]
    return sorted({entry.caveat.sentence for entry in found.missing if entry.caveat.code == CODE})


def test_a_whole_archive_says_nothing(archive: Path) -> None:
    assert caveats(archive) == []


def test_a_client_without_its_folders_is_named_in_every_answer(archive: Path) -> None:
    shutil.rmtree(folders_of(archive, "client3")[0])
    [gone] = folders_of(archive, "client3")
    shutil.rmtree(gone)
    assert caveats(archive) == ["cbt_config.yaml names 3 clients, and nothing of client3.lab.test is here: its I/Os are missing"]
    files = Files([archive], jobs=1)
    whole = files.answer(Question(runs=(RUN,), step="all", by=("op",)))
    assert len(said(whole)) == 1
    assert "client3.lab.test" in said(whole)[0]
    assert not any(percentiles(whole, Wanted(parse_percentiles("99"))).columns["complete"])
    other = files.answer(Question(runs=(RUN,), step="all", by=("op",), where={"host": "client1*"}))
    assert said(other) == []


def test_only_the_runs_that_a_client_is_missing_from_lack_it(archive: Path) -> None:
    shutil.rmtree(folders_of(archive, "client3")[0])
    found = discover([archive], ReadOptions())
    assert {entry.run.split("/")[-3] for entry in found.missing} == {"16k7030"}


def test_parts_that_somebody_named_are_not_held_against_the_whole(archive: Path) -> None:
    part, other = folders_of(archive, "client1")[0], folders_of(archive, "client2")[0]
    assert caveats(part) == []
    assert caveats(part, other) == []
    assert caveats(part.parent) == []
    shutil.rmtree(part)
    assert len(caveats(other.parent)) == 1


def test_names_that_differ_are_not_guessed(archive: Path) -> None:
    config = archive / "results" / "cbt_config.yaml"
    text = config.read_text()
    config.write_text(text.replace("- client3.lab.test", "- admin@client3"))  # the short name, as another user
    assert caveats(archive) == []
    config.write_text(text.replace("- client3.lab.test", "- 10.0.0.3"))  # three clients, three hosts: perhaps the same
    assert caveats(archive) == []
    config.write_text(text.replace("- client3.lab.test", "- 10.0.0.3\n  - 10.0.0.4"))
    assert caveats(archive) == [
        "cbt_config.yaml names 4 clients, and of 10.0.0.3, 10.0.0.4 logs of 1 host at most are here: I/Os are missing"
    ]
    config.write_text(text.replace("- client3.lab.test", "- 10.0.0.3\n  - 10.0.0.4"))
    assert caveats(archive, host_alias={"client3.lab.test": "10.0.0.3"}) == [
        "cbt_config.yaml names 4 clients, and nothing of 10.0.0.4 is here: its I/Os are missing"
    ]


@pytest.mark.slow
def test_a_question_for_a_client_that_left_nothing_is_told_so(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in folders_of(archive, "client3"):
        shutil.rmtree(folder)
    lost = "cbt_config.yaml names 3 clients, and nothing of client3.lab.test is here: its I/Os are missing"
    with ElasticsearchDouble() as double:
        stores = [f"sqlite:{tmp_path / 'x.db'}", ElasticGround(double.url).url]
        for url in stores:
            assert command(["load", str(archive), "--run", "b", "--store", url]) == 0
        questions = [[str(archive)], [str(archive), "--step", "10s"], *([url] for url in stores)]
        for words in questions:
            capsys.readouterr()
            assert command(["percentiles", *words, "--run", "*-8", "--where", "host=client3*"]) == 3
            (said,) = [line for line in capsys.readouterr().err.splitlines() if "client3*" in line]
            assert said.startswith("tailboard: no host matches client3*: there are client1.lab.test, client2.lab.test; ")
            assert lost in said
            assert command(["percentiles", *words, "--run", "*-8", "--where", "host=nosuch"]) == 3
            assert lost not in capsys.readouterr().err


def test_settings_that_name_no_clients_say_nothing(archive: Path) -> None:
    config = archive / "results" / "cbt_config.yaml"
    shutil.rmtree(folders_of(archive, "client3")[0])
    for broken in ("cluster: {}\n", "cluster: {clients: }\n", "cluster: {clients: 7}\n", "[1, 2]\n"):
        config.write_text(broken)
        assert caveats(archive) == []


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_store_says_it_until_the_client_is_loaded(archive: Path, tmp_path: Path, kind: str) -> None:
    kept = tmp_path / "kept"
    for folder in folders_of(archive, "client3"):
        target = kept / folder.relative_to(archive)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, target)
    question = Question(runs=(RUN,), step="all", by=("op",))
    with open_store(f"{kind}:{tmp_path / 'x.db'}", write=True) as store:
        load([archive], store, LoadOptions(read=ReadOptions(), jobs=1))
        assert len(said(store.answer(question))) == 1
        shutil.copytree(kept, archive, dirs_exist_ok=True)
        load([archive], store, LoadOptions(read=ReadOptions(), jobs=1))
        assert said(store.answer(question)) == []
        assert said(store.answer(Question(step="all"))) == []
        for folder in folders_of(archive, "client3"):
            shutil.rmtree(folder)
        again = load([archive], store, LoadOptions(read=ReadOptions(), jobs=1))
        assert again.loaded == 0
        assert said(store.answer(question)) == []


def parts_of(archive: Path, below: Path) -> list[Path]:
    """Return copies of an archive that hold the folders of one client each, as each client copies its own."""
    parts = []
    for client in ("client1", "client2", "client3"):
        shutil.copytree(archive, part := below / client / archive.name)
        for other in {"client1", "client2", "client3"} - {client}:
            for folder in folders_of(part, other):
                shutil.rmtree(folder)
        parts.append(part)
    return parts


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "double"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_clients_loaded_one_by_one_are_complete_in_the_end(
    archive: Path, tmp_path: Path, kind: str, order: tuple[int, ...]
) -> None:
    """Each load calls the others missing; once all are there nothing is, in answers and in what dashboards read."""
    parts = parts_of(archive, tmp_path / "parts")
    questions = [Question(step="all", by=("host",)), Question(step="all", by=("op",)), Question(step=5_000_000_000, by=("op",))]
    expected = [table_of(Files([archive], ReadOptions(run="B"), jobs=1).answer(question)) for question in questions]
    with grounds(kind, tmp_path) as ground:
        for number in order:
            loaded(ground.url, [parts[number]], run="B")
            with open_store(ground.url) as store:
                assert bool(said(store.answer(questions[0]))) is (number != order[-1])
        with open_store(ground.url) as store:
            assert [table_of(store.answer(question)) for question in questions] == expected
            assert not store.verify(lambda _: True).findings
        if isinstance(ground, ElasticGround):
            rollups = [hit["_source"]["rollup"] for hit in ground.hits("rollups-*")]
            assert {rollup["complete"] for rollup in rollups} == {True}


def table_of(answer: Answer) -> dict[str, list[object]]:
    columns = percentiles(answer, Wanted(parse_percentiles("50,99"))).columns
    return {name: [str(cell) for cell in column] for name, column in columns.items()}
