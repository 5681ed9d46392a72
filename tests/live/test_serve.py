"""The server of the live page without a browser: who may ask what, that nothing is computed twice, that nothing is written."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
import pytest

from ingest.cli import run as command
from ingest.live.serve import app as apps
from ingest.live.serve import cache
from ingest.live.serve import cache as sources
from ingest.live.serve import page as pages
from ingest.live.serve.cache import MOST_BYTES, BusyError, Cache
from ingest.query.episodes import Episode
from ingest.query.question import Question
from ingest.store import live_store, open_store
from ingest.store.live import NOTHING_FINAL, NOTHING_LEFT, Watch
from ingest.store.sqlite import store as sqlite
from ingest.view.page.report import parts_from
from tests.databases import database
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.origin import SECOND, ZERO, random_rows, series
from tests.live.serving import Command, Relay, get, plain, put, raw, serving, update
from tests.store.grounds import SERVER, ElasticGround
from tests.view.page import HOSTILE
from tests.view.test_report import Streams, content_of, level_of

pytest.importorskip("vl_convert")
TRACES = Path(__file__).parents[1] / "data" / "traces"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> str:
    url = f"sqlite:{tmp_path_factory.mktemp('served') / 'a.db'}"
    put(url, random_rows(7), "nightly-1")
    put(url, random_rows(8), "nightly-2", zero=ZERO + 3600 * SECOND)
    return url


@pytest.fixture(scope="module")
def port(store):
    with serving(store) as found:
        yield found


# ---- Who may ask what.


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/",
        "/data/",
        "/data%00",
        "/index.html",
        "/ingest/view/page/script/state.js",
        "/.",
    ],
)
def test_there_are_two_addresses_and_no_folder(port, path):
    answer = get(port, path)
    assert answer.status == 404
    assert answer.text == "not found: / is the page, /data its data\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_it_is_only_read_from(port, method):
    for path in ("/", "/data", "/elsewhere"):
        answer = get(port, path, method, body=b"run=x" if method == "POST" else None)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_name_of_elsewhere_is_refused(port):
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost.",
        "",
        "127.0.0.1:1:2",
        "a b",
        "10.0.0.1",
        "[::2]",
        "127.0.0.1@evil",
    ):
        assert get(port, "/data", headers={"Host": host}).status in (400, 403), host
    for host in ("127.0.0.1", "localhost", "LOCALHOST:9", "[::1]:80", f"127.0.0.1:{port}"):
        assert get(port, "/data", headers={"Host": host}).status == 200, host
    assert b" 403 " in raw(port, b"GET /data HTTP/1.0\r\n\r\n").split(b"\r\n")[0]
    assert raw(port, b"GET /data HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n").split(b" ")[1] in (b"400", b"403")
    assert raw(port, b"GET http://evil.example/data HTTP/1.1\r\nHost: evil.example\r\n\r\n").split(b" ")[1] == b"403"


def test_names_are_known_where_it_is_asked_for(store):
    with serving(store, named=("bench01",)) as here, serving(store, named=("bench01",), anywhere=True) as there:
        for found, host, status in (
            (here, "bench01:80", 200),
            (here, "10.1.2.3", 403),
            (there, "10.1.2.3:80", 200),
            (there, "[fe80::1]", 200),
            (there, "evil.example", 403),
        ):
            assert get(found, "/data", headers={"Host": host}).status == status, host


@pytest.mark.slow
def test_other_pages_cannot_have_it_asked(port):
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert get(port, "/data", headers={"Sec-Fetch-Site": site}).status == status
    assert get(port, "/", headers={"Sec-Fetch-Site": "cross-site"}).status == 200  # a link to the page is fine


def test_long_requests_are_refused(port):
    assert get(port, "/data?step=" + "1" * 9000).status == 414
    assert get(port, "/" + "x" * 40_000).status in (414, 431)
    assert get(port, "/data", headers={"X-Long": "x" * 40_000}).status == 431
    assert get(port, "/data", "GET", body=b"x" * 5000).status == 413


def test_nothing_gets_into_the_head_of_an_answer(port):
    for path in ("/data?run=a%0d%0aSet-Cookie:%20x=1", "/%0d%0aSet-Cookie:x", "/data?step=%0aX: y"):
        said = raw(port, f"GET {path.replace(' ', '%20')} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        head, _, _ = said.partition(b"\r\n\r\n")
        assert head.split(b" ")[1] in (b"400", b"404")
        assert b"set-cookie" not in head.lower() and b"\nx:" not in head.lower()
    said = raw(port, b'GET /data HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "a\r\nX-Bad: 1"\r\nConnection: close\r\n\r\n')
    assert b"x-bad" not in said.partition(b"\r\n\r\n")[0].lower()


def test_every_answer_forbids_what_is_not_needed(port):
    tag = get(port, "/data").headers["etag"]
    answers = [
        get(port, "/"),
        get(port, "/data"),
        get(port, "/data", headers={"If-None-Match": tag}),
        get(port, "/favicon.ico"),
        get(port, "/x"),
        get(port, "/", "POST"),
        get(port, "/data?x=1"),
    ]
    assert [one.status for one in answers] == [200, 200, 304, 204, 404, 405, 400]
    for one in answers:
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["referrer-policy"] == "no-referrer"
        assert one.headers["cache-control"] == "no-store"
        assert one.headers["cross-origin-resource-policy"] == "same-origin"
        policy = dict(part.strip().split(" ", 1) for part in one.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'"
        assert "server" not in one.headers and "set-cookie" not in one.headers
    page = answers[0]
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy["connect-src"] == "'self'" and policy["img-src"] == "data:"
    assert "unsafe" not in policy["script-src"] and policy["script-src"].count("sha256-") == 2
    within = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.text)[1]
    assert page.headers["content-security-policy"] == f"{within}; frame-ancestors 'none'"


def test_head_is_get_without_a_body(port):
    for path in ("/", "/data", "/nothing"):
        whole, head = get(port, path), get(port, path, "HEAD")
        assert head.body == b""
        assert (head.status, head.headers["content-length"]) == (whole.status, whole.headers["content-length"])


# ---- What may be asked.


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?step=3", "'3' is not a duration"),
        ("?step=0s", "'0s' is not a duration"),
        ("?step=1500ms", "is not a multiple"),
        ("?from=yesterday", "'yesterday' is not a time"),
        ("?to=now-", "'' is not a duration"),
        ("?from=1&from=2", "from= is taken once"),
        ("?from=" + "1" * 80, "from= is taken once, and short"),
        ("?run=", "run= has no value"),
        ("?run=%01", "run= has no value"),
        ("?run=%ff", "in UTF-8"),
        ("?where=host", "no parameter 'where'"),
        ("?" + "&".join(f"run=r{number}" for number in range(9)), "9 runs are more than one page shows"),
        ("?" + "&".join(f"run=r{number}" for number in range(40)), "at most 16 of them"),
        ("?novalue", "not NAME=VALUE"),
    ],
)
def test_bad_words_are_answered_by_a_sentence(port, query, said):
    for path in ("/data", "/"):
        answer = get(port, path + query)
        assert answer.status == 400
        assert said in answer.text and answer.text.count("\n") == 1 and "Traceback" not in answer.text
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_what_is_not_there_is_waited_for(port):
    answer = get(port, "/data?run=other")
    assert (answer.status, answer.text) == (404, "no run 'other' here: there are nightly-1, nightly-2\n")
    page = get(port, "/?run=%3Cscript%3Ealert(1)%3C/script%3E")
    assert page.status == 200 and "Nothing to show yet" in page.text
    assert "<script>alert" not in page.text and "&lt;script&gt;alert" in page.text
    assert get(port, "/data?from=now-15m").status == 404


def runs_of(told: dict) -> dict:
    content, _ = content_of(told["data"])
    return {run["name"]: run for run in content["runs"]}


@pytest.mark.slow
def test_the_page_holds_what_the_report_of_the_same_words_holds(store, port):
    names = ["nightly-1", "nightly-2"]
    for query, chosen, words in (
        ("", ["nightly-2"], {}),
        ("?run=nightly-1", ["nightly-1"], {}),
        ("?run=nightly-2&run=nightly-1", names, {}),
        ("?run=nightly-1&step=5s", ["nightly-1"], {"step": 5 * SECOND}),
    ):
        told = update(port, query)
        with open_store(store) as opened:
            expected = parts_from(opened, chosen, Question(runs=tuple(chosen), **words), named=store)
        page, streams = content_of(told["data"])
        report, expected_streams = content_of(expected.filling["data"])
        live = page["sections"].pop("live")
        assert page == report and streams == expected_streams
        assert [run["name"] for run in live["runs"] if run["shown"]] == sorted(chosen, reverse=True)
        assert {place: told["html"][place] for place in ("facts", "summary")} == {
            place: expected.filling[place] for place in ("facts", "summary")
        }


def test_a_range_is_of_the_clock_or_of_the_run(port):
    whole, part = (runs_of(update(port, f"?run=nightly-1{more}"))["nightly-1"] for more in ("", "&from=%2B10s&to=%2B20s"))
    assert whole["end"] - whole["begin"] == 40_000
    assert (part["begin"] - part["start"], part["end"] - part["start"]) == (10_000, 20_000)


def test_a_range_may_begin_inside_a_window_of_a_run_that_is_loading(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    put(url, plain(range(30)))
    put(url, plain(range(30, 40)), done=False)
    with serving(url) as port:
        for begin, windows in (("10", 30), ("10.3", 30), ("39.999", 1)):
            run = runs_of(update(port, f"?from={ZERO // SECOND + float(begin):.3f}"))["r"]
            assert run["levels"]["cluster"]["windows"] == windows, begin


def test_what_of_a_watched_run_is_final_is_told(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    put(url, plain(range(30)))
    put(url, plain(range(30, 40)), done=False)
    with serving(url, refresh_ns=10**8) as port:
        for final, shown in ((ZERO + 20 * SECOND, [(ZERO + 20 * SECOND) / 1e6]), (NOTHING_FINAL, []), (NOTHING_LEFT, [])):
            with open_store(url, write=True) as store:
                live_store(store).note_watch(Watch("r", "w", final, 10**6, time.time_ns()))
            time.sleep(0.2)
            content = content_of(update(port)["data"])[0]
            (run,) = content["sections"]["live"]["runs"]
            assert run["state"] == "watched"
            assert [mark["t"] for mark in content["marks"] if mark["text"] == "provisional from here on"] == shown
            assert ([run["final"]] if "final" in run else []) == shown


def test_episodes_come_and_change(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    put(url, plain(range(30)))
    one = Episode(
        "read p99",
        "r",
        (("op", "read"),),
        "completion",
        "99",
        10**6,
        SECOND,
        ZERO,
        ZERO + 3 * SECOND,
        10**7,
        False,
        9,
        3,
        0,
        0,
        "h<1>",
        "open",
    )
    with serving(url, refresh_ns=10**8) as port:
        before = update(port)
        shapes = []
        for end, state in ((3, "open"), (7, "ended")):
            with open_store(url, write=True) as store:
                store.keep_episodes("r", "read p99", [replace(one, end_ns=ZERO + end * SECOND, state=state)])
            time.sleep(0.2)
            told = update(port)
            shapes.append(told["shape"])
            assert "h&lt;1&gt;" in told["html"]["episodes-rows"] and f">{end}s<" in told["html"]["episodes-rows"]
            assert 'id="episodes-rows"' in get(port, "/").text
        assert shapes[0] == shapes[1] != before["shape"] and "episodes-rows" not in before["html"]


def test_runs_without_latencies_have_a_live_page_too(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    with lzma.open(TRACES / "flat.txt.xz") as packed, (tmp_path / "flat.perf").open("wb") as out:
        shutil.copyfileobj(packed, out)
    assert command(["load", str(tmp_path / "flat.perf"), "--run", "o", "--t0", "2026-11-20T00:00:00Z", "--store", url]) == 0
    with serving(url) as port:
        page = get(port, "/")
        assert page.status == 200 and 'id="pause"' in page.text and "Subsecond offsets of" in page.text
        told = update(port)
        assert content_of(told["data"])[0]["sections"]["live"]["runs"][0]["shown"]


def test_a_server_for_some_runs_offers_no_others(store):
    with serving(store, Question(runs=("nightly-1",))) as port:
        live = content_of(update(port)["data"])[0]["sections"]["live"]
        assert [run["name"] for run in live["runs"]] == ["nightly-1"]
        assert get(port, "/data?run=nightly-2").status == 404


def test_a_run_is_shown_by_its_whole_name(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    for name, count in (("a", 10), ("a/b", 20), ("[a]*", 40)):
        put(url, plain(range(5), count=count), name)
    with serving(url) as port:
        for name, samples in (("a", 60), ("a/b", 110), ("[a]*", 210)):
            told = update(port, f"?run={name.replace('[', '%5B').replace(']', '%5D')}")
            assert list(runs_of(told)) == [name]
            assert f"{samples} samples" in told["html"]["lead"]


def test_hostile_names_are_text(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    put(url, [(series(label, label, label), at, {900: 5}) for label in HOSTILE for at in range(3)], HOSTILE[0])
    with serving(url) as port:
        page, told = get(port, "/").text, update(port)
        shown = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)  # the page's own, which is run by its digest alone
        for html in (shown, *told["html"].values()):
            assert "<img" not in html and "<b>bold" not in html and "<script>hacked" not in html
        assert page.count("<script") == page.count("</script>") == 3


# ---- What it costs.


@pytest.mark.slow
def test_an_idle_page_costs_nothing(store, monkeypatch):
    made = []
    monkeypatch.setattr(pages, "parts_from", lambda *words, **more: made.append(1) or parts_from(*words, **more))
    with serving(store, refresh_ns=4 * 10**8) as port:
        tag = get(port, "/data").headers["etag"]
        begun = time.monotonic()
        while time.monotonic() - begun < 1:
            answer = get(port, "/data", headers={"If-None-Match": tag})
            assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", tag)
        assert len(made) == 1


def test_what_is_written_without_a_change_is_no_news(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    put(url, plain(range(10)))
    with serving(url, refresh_ns=10**8) as port:
        first = get(port, "/data").headers["etag"]
        with database(tmp_path / "a.db") as writer:
            writer.execute("UPDATE runs SET state = state")
        writer.close()
        time.sleep(0.2)
        again = get(port, "/data", headers={"If-None-Match": f'W/{first}, "other"'})
        assert again.status == 304
        put(url, plain(range(10, 12)))
        time.sleep(0.2)
        more = get(port, "/data", headers={"If-None-Match": first})
        assert more.status == 200 and "1,224 samples" in more.text


def test_a_server_that_starts_anew_knows_its_tags(store):
    with serving(store) as first, serving(store) as second:
        assert get(second, "/data", headers={"If-None-Match": get(first, "/data").headers["etag"]}).status == 304


def test_pages_are_made_one_at_a_time_and_all_that_is_kept_of_them_is_counted(store, monkeypatch):
    made, working, waiting = [], threading.Lock(), threading.Event()

    def parts(*words, **more):
        assert working.acquire(blocking=False), "two pages are made at once"
        waiting.wait(300)
        working.release()
        return replace(parts_from(*words, **more), swapped={"x": "\N{SNOWMAN}" * 1000})

    subject = pages.Subject(store, Question(), 10**10)
    monkeypatch.setattr(pages, "parts_from", parts)
    look = lambda run: made.append(pages.view_of(subject, lambda: "1", pages.Selection((run,)), None))
    threads = [threading.Thread(target=look, args=(run,)) for run in ("nightly-1", "nightly-2")]
    for one in threads:
        one.start()
    time.sleep(0.2)  # the second one has come to where it waits, or would be in the midst of its page
    waiting.set()
    for one in threads:
        one.join(300)
    assert len(made) == 2
    for view in made:
        texts = (*view.parts.filling.values(), *view.parts.swapped.values())
        assert view.size >= sum(len(text.encode("utf-16-le")) if max(text, default="") > "\xff" else len(text) for text in texts)


@dataclass(frozen=True)
class Sized:
    """Something kept."""

    name: str
    size: int = 1


def test_those_who_ask_the_same_share_one_answer():
    made, go = [], threading.Event()

    def make(key, before):
        made.append(key)
        assert go.wait(300)
        return Sized(key)

    kept, found = Cache(make, 60, 5), []
    threads = [threading.Thread(target=lambda key=key: found.append(kept.ask(key).made.name)) for key in "aabbaa"]
    for one in threads:
        one.start()
    while len(made) < 2:
        time.sleep(0.01)
    go.set()
    for one in threads:
        one.join(300)
    assert sorted(found) == list("aaaabb") and sorted(made) == ["a", "b"]
    assert kept.ask("a").made.name == "a" and len(made) == 2


def test_too_many_questions_are_put_off(monkeypatch):
    monkeypatch.setattr(cache, "FIRST_SECONDS", 0.05)
    go = threading.Event()

    def make(key, before):
        assert go.wait(300)
        return Sized(str(key))

    kept = Cache(make, 60, 0.05)
    for key in range(cache.MOST_PENDING):
        with pytest.raises(BusyError, match="takes long"):
            kept.ask(key)
    with pytest.raises(BusyError, match="too many questions"):
        kept.ask("one more")
    go.set()
    begun = time.monotonic()
    while len(kept._pending) and time.monotonic() - begun < 300:
        time.sleep(0.01)
    assert kept.ask(3).made.name == "3"


def test_what_takes_long_is_answered_by_what_was_there():
    go, made = threading.Event(), []

    def make(key, before):
        made.append(before)
        assert len(made) == 1 or go.wait(300)
        return Sized(f"{key}{len(made)}")

    kept = Cache(make, 0.0, 0.05)
    assert kept.ask("a").made.name == "a1"
    time.sleep(0.1)
    old = kept.ask("a")
    assert old.made.name == "a1" and old.age > 0.1
    go.set()
    begun = time.monotonic()
    while kept.ask("a").made.name == "a1":
        assert time.monotonic() - begun < 300
    assert made[0] is None and made[1].name == "a1"


def test_what_fails_is_tried_again_and_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 1000)
    fails = [True]

    def make(key, before):
        if fails.pop() if fails else False:
            raise ValueError("once")
        return Sized(str(key), 300)

    kept = Cache(make, 60, 5)
    with pytest.raises(ValueError, match="once"):
        kept.ask(0)
    for key in range(50):
        kept.ask(key)
    assert kept.size <= 1000 and list(kept._kept) == [47, 48, 49]
    assert not kept._pending and not kept._waiting
    assert Cache(lambda key, before: Sized("large", 1001), 60, 5).ask(0).made.name == "large"  # said, and not kept


def test_many_browsers_at_once_are_all_answered(store):
    with serving(store) as port:
        found = []
        threads = [threading.Thread(target=lambda: found.append(get(port, "/data").status)) for _ in range(40)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(30)
        assert len(found) == 40 and set(found) <= {200, 503} and found.count(200) >= 6


# ---- Stores that others write.


def test_it_never_writes(store, tmp_path):
    path = tmp_path / "a.db"
    shutil.copy(store.removeprefix("sqlite:"), path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with serving(f"sqlite:{path}") as port:
        for address in ("/", "/data", "/data?run=nightly-1&step=2s", "/data?run=nobody", "/data?step=;drop"):
            get(port, address)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


def test_it_reads_while_a_loader_writes(tmp_path):
    url, path = f"sqlite:{tmp_path / 'a.db'}", tmp_path / "a.db"
    put(url, plain(range(10)))
    with serving(url, refresh_ns=10**8) as port:
        assert "1,020 samples" in update(port)["html"]["lead"]
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM intervals")
        time.sleep(0.2)
        assert "1,020 samples" in update(port)["html"]["lead"]  # before the writer lets go
        writer.execute("ROLLBACK")
        writer.close()


def test_an_answer_that_takes_for_ever_is_given_up(store, monkeypatch):
    monkeypatch.setattr(sources, "LONGEST_SECONDS", 0.0)
    monkeypatch.setattr(sqlite, "STEPS_BETWEEN", 1)
    with serving(store) as port:
        answer = get(port, "/data")
        assert answer.status == 503
        assert answer.text == f"{store}: the answer takes more than 0 s: choose a shorter range\n"


def test_a_file_that_cannot_be_watched_is_looked_at(tmp_path, monkeypatch):
    url, path = f"sqlite:{tmp_path / 'a.db'}", tmp_path / "a.db"
    put(url, plain(range(3)))
    monkeypatch.setattr(
        sources.sqlite3, "connect", lambda *_, **__: (_ for _ in ()).throw(sqlite3.OperationalError("unable to open"))
    )
    version = sources.version_of(url)
    first = version()
    assert version() == first
    os.utime(path, (1, 1))
    assert version() != first


def test_a_store_that_is_made_anew_is_another_one(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    put(url, plain(range(10)), "before")
    with serving(url, refresh_ns=10**8) as port:
        assert list(runs_of(update(port))) == ["before"]
        for path in tmp_path.iterdir():
            path.unlink()
        time.sleep(0.2)
        gone = get(port, "/data")
        assert gone.status == 503 and "there is no store at" in gone.text
        assert gone.headers["retry-after"] == "2"
        assert get(port, "/").status == 503
        put(url, plain(range(20)), "after")
        time.sleep(0.2)
        assert list(runs_of(update(port))) == ["after"]


def counts_by_level(told: dict) -> dict:
    """Return the counts that a page with one run holds, by scope."""
    content, body = content_of(told["data"])
    streams, (run,) = Streams(body), content["runs"]
    return {scope: level_of(level, streams) for scope, level in run["levels"].items()}


@pytest.fixture
def double():
    with ElasticsearchDouble(version=SERVER) as found:
        yield found
        assert not found.refusals, found.refusals


def test_elasticsearch_says_the_same(tmp_path, double):
    rows, sqlite, ground = random_rows(5, windows=12), f"sqlite:{tmp_path / 'a.db'}", ElasticGround(double.url)
    put(sqlite, rows)
    put(ground.url, rows)
    with serving(ground.url, refresh_ns=10**8) as port, serving(sqlite) as other:
        one, two = (counts_by_level(update(found)) for found in (port, other))
        assert one == two and set(one) == {"cluster", "hosts", "threads"}
        assert sum(one["cluster"].values()) == sum(sum(bins.values()) for _, _, bins in rows)


def test_elasticsearch_is_asked_little_while_nothing_changes(tmp_path, double):
    ground = ElasticGround(double.url)
    put(ground.url, plain(range(5)))
    with serving(ground.url, refresh_ns=10**8) as port:
        tag = get(port, "/data").headers["etag"]
        time.sleep(0.2)
        before = len(double.requests)
        assert get(port, "/data", headers={"If-None-Match": tag}).status == 304
        asked = [seen.path for seen in list(double.requests)[before:]]
        assert 0 < len(asked) <= 5 and all(path.split("?")[0].endswith(("/_search", "/_msearch")) for path in asked)
        for windows, done, state in (
            (range(5, 7), False, "loading"),
            (range(5, 9), True, "complete"),
            (range(9, 11), True, "complete"),
        ):
            put(ground.url, plain(windows), done=done)
            time.sleep(0.2)
            answer = get(port, "/data", headers={"If-None-Match": tag})
            assert answer.status == 200, windows
            tag = answer.headers["etag"]
            told = orjson.loads(answer.body)
            assert {run["state"] for run in content_of(told["data"])[0]["sections"]["live"]["runs"]} == {state}
        assert "1,122 samples" in told["html"]["lead"]


@pytest.mark.slow
def test_a_server_that_is_gone_is_told_and_found_again(double, monkeypatch):
    monkeypatch.setenv("TAILBOARD_ES_PATIENCE", "0.2")
    ground = ElasticGround(double.url)
    put(ground.url, plain(range(5)))
    with Relay(double.url) as relay, serving(ground.url.replace(double.url, relay.url), refresh_ns=10**8) as port:
        tag = get(port, "/data").headers["etag"]
        relay.cut()
        time.sleep(0.2)
        gone = get(port, "/data", headers={"If-None-Match": tag})
        assert gone.status in (304, 503)
        while gone.status == 304:  # until the patience with the server has ended, what was there is given, and says how old it is
            assert int(gone.headers["age"]) >= 0
            time.sleep(0.1)
            gone = get(port, "/data", headers={"If-None-Match": tag})
        assert relay.url in gone.text and "Traceback" not in gone.text
        relay.mend()
        time.sleep(0.2)
        assert get(port, "/data", headers={"If-None-Match": tag}).status == 304


# ---- The command.


def addresses_of(port: int) -> set[str]:
    """Return the addresses that a port is listened at."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}


@pytest.mark.slow
def test_it_listens_here_and_ends_when_it_is_told(store):
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 0)):
        with Command(store) as server:
            assert re.fullmatch(rf"tailboard: http://127\.0\.0\.1:\d+/ shows {re.escape(store)}; Ctrl-C ends it\n", server.said)
            assert get(server.port, "/data").status == 200
            assert addresses_of(server.port) == {"0100007F"}  # 127.0.0.1, as the kernel has it
            assert server.stop(number) == (status, "")


@pytest.mark.slow
def test_to_others_it_is_open_only_where_that_is_asked_for(store):
    with Command(store, "--listen", "0.0.0.0") as server:
        assert get(server.port, "/data", headers={"Host": "192.0.2.7"}).status == 200
        assert get(server.port, "/data", headers={"Host": "evil.example"}).status == 403
        assert (
            server.stop()[1]
            == "tailboard: whoever can reach this computer can read all of the selected runs there, without a password\n"
        )


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--refresh", "1ms"], 2, "--refresh takes 500ms to 1h, not 1ms"),
        (["--refresh", "often"], 2, "is not a duration"),
        (["--port", "70000"], 2, "is not in the range"),
        (["--listen", "192.0.2.1"], 2, "--listen 192.0.2.1 is no address of this computer"),
        (["--listen", "no.such.host.invalid"], 2, "--listen no.such.host.invalid is no address of this computer"),
        (["--from", "soon"], 2, "is not a time"),
    ],
)
def test_bad_words_of_the_call(store, capsys, words, status, said):
    assert command(["serve", store, *words]) == status
    told = capsys.readouterr().err
    assert said in told and "Traceback" not in told


def test_a_port_that_is_taken(store, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert command(["serve", store, "--port", str(port)]) == 4
        assert (
            capsys.readouterr().err
            == f"tailboard: port {port} of 127.0.0.1 is in use: give another with --port, or --port 0 for any\n"
        )


def test_what_is_no_store(tmp_path, capsys):
    assert command(["serve", f"sqlite:{tmp_path / 'none.db'}"]) == 4
    assert "there is no store at" in capsys.readouterr().err
    assert command(["serve", str(tmp_path / "logs")]) == 3
    assert capsys.readouterr().err == f"tailboard: {tmp_path / 'logs'}: no such file or folder\n"
    assert command(["serve", f"sqlite:{tmp_path / 'none.db'}", str(tmp_path)]) == 2
    assert "ask a store or files, not both at once" in capsys.readouterr().err


def test_without_waitress_it_says_what_to_install(store, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "waitress"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("server", "connections"):
        monkeypatch.delitem(sys.modules, f"ingest.live.serve.{name}", raising=False)
    assert command(["serve", store]) == 2
    assert capsys.readouterr().err == "tailboard: serve needs waitress: pip install waitress\n"


@pytest.mark.slow
def test_a_range_that_moves_on_is_kept_once(tmp_path, monkeypatch):
    url, zero = f"sqlite:{tmp_path / 'a.db'}", (time.time_ns() // SECOND - 60) * SECOND
    put(url, plain(range(60)), zero=zero)
    made = []
    monkeypatch.setattr(apps, "Cache", lambda *words, **more: made.append(Cache(*words, **more)) or made[0])
    with serving(url, refresh_ns=10**8) as port:
        begins = []
        for _ in range(4):
            begins.append(content_of(update(port, "?from=now-30s")["data"])[0]["runs"][0]["begin"])
            time.sleep(0.6)
        assert len(made[0]._kept) == 1
        assert begins == sorted(begins) and begins[-1] - begins[0] >= 1000 and (begins[-1] - begins[0]) % 1000 == 0


HOLDS = """
import re
from dataclasses import dataclass
from ingest.core.pool import freed_memory_given_back, keep_freed_memory
from ingest.live.serve.cache import Cache

@dataclass
class Sized:
    kept: bytes
    size: int = 1000

def made(key, before):
    parts = [bytes(100_000) for _ in range(2_000)]  # 200 MB of small blocks, none of which the system would map by itself
    return Sized(parts[-1] + b"")

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

keep_freed_memory()
cache = Cache(made, 60, 60)
with freed_memory_given_back():
    before = resident()
    for key in range(4):
        cache.ask(key)
    print(resident() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc, and glibc gives back")
def test_what_an_answer_was_made_of_is_given_back():
    done = subprocess.run([sys.executable, "-c", HOLDS], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 40, done.stderr


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_r10_serve_takes_the_memory_that_its_guide_says(tmp_path):
    """Five views of 16 jobs in half an hour: beside the program itself and the mapped file, the share of answers, 40 bytes a bin."""
    url, jobs, seconds, bins = f"sqlite:{tmp_path / 's.db'}", 16, 1800, 20
    made = [(series(host=f"h{job % 4}", job=str(job)), at) for job in range(jobs) for at in range(seconds)]
    put(url, [(one, at, {700 + 16 * n + (at + 7 * int(one.job)) % 16: 1 + n for n in range(bins)}) for one, at in made])
    with Command(url) as server:
        program = server.resident + (tmp_path / "s.db").stat().st_size  # its libraries differ from one machine to another
        for view in ("", "?step=1s", "?step=10s", "?from=%2B600s", "?to=%2B600s"):
            assert get(server.port, f"/data{view}").status == 200
        peak, resident = server.peak, server.resident
        print(f"{jobs * seconds * bins:,} bins: program {program:,}, peak {peak:,}, then {resident:,} bytes")
        assert peak < program + MOST_BYTES + 40 * jobs * seconds * bins
        assert resident < program + MOST_BYTES / 2  # one of these answers takes 1 MB
