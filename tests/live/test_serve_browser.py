"""The live page in a real Chromium: what is new is drawn soon and exactly, what was chosen stays, failures are told and end by themselves."""

from __future__ import annotations

import random
import re
import shutil
import socket
import time
from contextlib import contextmanager, suppress

import pytest
from playwright.sync_api import Error

from ingest.core.units import Instant
from ingest.query.box import Box, explained
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.records import WATCHED
from tests.browsing import blank_page, heard
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.origin import SECOND, ZERO, series
from tests.effort import figure
from tests.live.feeding import Clock, Writer, begun
from tests.live.serving import Command, plain, put, serving
from tests.store.grounds import SERVER, ElasticGround
from tests.view.page import HOSTILE, answered, choose, drag, drawn, hovered, rows_of, settle

TURNS = figure(12, 12, 600)  # of about a second; memory is looked at from a minute on
NETWORK = "Failed to load resource"


@pytest.fixture
def looking(browser):
    """Return the context manager that opens a live page, and in the end finds no error but those of the network that it may have."""

    @contextmanager
    def page_of(url, *, fails=False, script=""):
        with blank_page(browser, script=script) as page, heard(page) as (told, asked):
            page.goto(f"{url}{'&' if '#' in url else '#'}open=rate,load")
            page.asked = asked
            yield page
            if page.locator("#failed").count():
                settle(page)
                assert page.locator("#failed").is_hidden(), page.locator("#failed").inner_text()
        assert [said for said in told if not (fails and NETWORK in said)] == []
        origin = re.match(r"http://[^/]+/", url)[0]
        assert all(one.startswith((origin, "data:")) for one in asked), asked

    return page_of


@pytest.fixture
def url(tmp_path) -> str:
    found = f"sqlite:{tmp_path / 'a.db'}"
    put(found, plain(range(30)) + plain(range(30), "write", "h2", base=1100))
    return found


def until(page, what: str, seconds: float = 300.0) -> None:
    """Wait for what a script says: for so long only that a test which hangs ends."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:  # the page's policy lets no text be run in it later
        with suppress(Error):  # it is being loaded anew
            if page.evaluate(f"Boolean({what})"):
                return
        page.wait_for_timeout(20)
    raise AssertionError(f"{what} did not become true in {seconds} s")


SAMPLES = "Object.keys(tailboard.views).length && tailboard.views.rate?.data('points').reduce((sum, row) => sum + row.n, 0)"


def heap_of(page) -> int:
    """Return how many bytes of objects the page holds once its garbage is collected."""
    session = page.context.new_cdp_session(page)
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return int(used)


NEWEST = "Math.max(0, ...(tailboard.views.rate?.data('points') ?? []).map((row) => row.t))"


def both(windows: range) -> list:
    """Return rows of two hosts, of unlike latencies in each window."""
    return [
        row
        for at in windows
        for row in plain(range(at, at + 1), count=50 + at % 40) + plain(range(at, at + 1), "write", "h2", base=1100)
    ]


def paused_heap_of(page) -> int:
    """Return the same while nothing is asked or drawn."""
    page.locator("#pause").evaluate("button => button.click()")
    settle(page)
    found = heap_of(page)
    page.locator("#pause").evaluate("button => button.click()")
    return found


@pytest.mark.slow
def test_what_is_new_is_drawn_within_two_refreshes(looking, tmp_path):
    """Counted in what the page asks, as it draws: one question may have been under way when something was written."""
    url, zero = f"sqlite:{tmp_path / 'a.db'}", (time.time_ns() // SECOND - 70) * SECOND
    put(url, both(range(60)), zero=zero)
    with serving(url, refresh_ns=SECOND) as port, looking(f"http://127.0.0.1:{port}/?from=now-5m#by=op&p=90") as page:
        settle(page)
        for last in range(60, 65):
            put(url, both(range(last, last + 1)), done=last % 3 == 0, zero=zero)
            before = page.evaluate("tailboard.live.asked")
            drawn_it = f"{NEWEST} === {(zero + last * SECOND) // 1_000_000}"
            asked = page.evaluate(
                f"async () => {{ while (!({drawn_it})) await new Promise((done) => setTimeout(done, 5)); return tailboard.live.asked; }}"
            )
            assert asked - before <= 2


def calm(windows: range, *hosts: str) -> list:
    """Return rows of hosts that do nothing worth a sentence."""
    return [(series("read", host), at, {900 + at % 5: 100, 905: 100, 940: 20, 1000: 3}) for host in hosts for at in windows]


@pytest.mark.slow
def test_the_story_and_the_box_are_those_of_now_and_what_was_chosen_stays(looking, tmp_path):
    """A run that grows: nothing stands out, then h2 stalls. The box, a zoom and a typed field stay, nothing is loaded anew."""
    url = f"sqlite:{tmp_path / 'a.db'}"
    put(url, calm(range(40), "h1", "h2", "h3"), done=False)
    with serving(url, refresh_ns=SECOND // 2) as port, looking(f"http://127.0.0.1:{port}/#box=30,,,1&p=95") as page:
        settle(page)
        counted = "document.querySelector('#box tbody tr') && [...document.querySelectorAll('#box tbody tr')].map((row) => [row.cells[1].textContent, Number(row.cells[2].textContent.replaceAll(',', ''))])"
        before = dict(page.evaluate(counted))
        assert page.inner_text("#story-sentences").startswith("Nothing stands out")
        page.evaluate("void (window.kept = tailboard.views.heatmap)")
        page.locator("#more").evaluate("fold => (fold.open = true)")
        page.locator("input[name=sla]").focus()
        page.keyboard.type("3")  # and not entered yet
        stalled = [(series("read", "h2"), 45, {1700: 12})]
        put(url, [*calm(range(40, 60), "h1", "h3"), *stalled, *calm(range(46, 60), "h2")], done=False)
        until(page, "document.getElementById('story-sentences').textContent.includes('h2 stalled from 21:00:44.0 to 21:00:50.0')")
        settle(page)
        after = dict(page.evaluate(counted))
        assert before == {host: 10 * 220 for host in ("h1", "h2", "h3")}
        assert after == {"h1": 30 * 220, "h2": 24 * 220, "h3": 30 * 220}
        box = Box(Instant(30 * SECOND, relative=True), None, 0, 1_000_000)
        with open_store(url) as store:
            answer = explained(store, Question(), box)
        assert answer.inside == sum(after.values())
        assert page.locator(".event.rank1").first.inner_text() == "slowest 3.37 s"  # the map marks it
        assert page.evaluate("[tailboard.state.box, tailboard.state.p, kept === tailboard.views.heatmap]") == [
            "30,,,1",
            "95",
            True,
        ]
        assert page.evaluate("[document.activeElement.name, document.activeElement.value]") == ["sla", "3"]
        page.locator("#story-sentences a").click()
        settle(page)
        zoom = page.evaluate("[tailboard.state.from, tailboard.state.to]")
        taken = page.evaluate("tailboard.live.taken")
        put(url, calm(range(60, 70), "h1", "h2", "h3"), done=False)
        until(page, f"tailboard.live.taken > {taken}")
        settle(page)
        assert float(zoom[0]) < 40 and float(zoom[1]) > 46
        assert page.evaluate("[tailboard.state.from, tailboard.state.to, tailboard.state.box]") == [*zoom, "30,,,1"]
        assert dict(page.evaluate(counted)) == {"h1": 40 * 220, "h2": 34 * 220, "h3": 40 * 220}


@pytest.mark.soak
def test_a_page_that_is_open_for_long_draws_all_and_holds_no_more(looking, tmp_path):
    """The last minute of a run that is written all the time: as much to draw at the end as at the beginning."""
    url, zero = f"sqlite:{tmp_path / 'a.db'}", (time.time_ns() // SECOND - 70) * SECOND
    heaps, sizes, last = [], [], 69
    put(url, both(range(last + 1)), zero=zero)
    with Command(url, "--refresh", "1s") as server:
        with looking(server.url + "?from=now-60s#by=op&p=90") as page:
            settle(page)
            page.evaluate("void (window.kept = tailboard.views.percentiles)")
            for turn in range(1, TURNS + 1):
                page.wait_for_timeout(max(0, (zero + (last + 2) * SECOND - time.time_ns()) / 1e6))  # the next window is over
                now = (time.time_ns() - zero) // SECOND - 1
                put(url, both(range(last + 1, now + 1)), done=now % 3 == 0, zero=zero)
                last = now
                until(page, f"{NEWEST} === {(zero + last * SECOND) // 1_000_000}")
                if turn % max(5, TURNS // 36) == 0:
                    heaps.append(paused_heap_of(page))
                    sizes.append(server.resident)
            settle(page)
            begin, stop = page.evaluate("['begin', 'end'].map((name) => tailboard.content.runs[0][name])")
            with open_store(url) as store:
                asked = Question(
                    by=("op",), step=SECOND, begin=Instant(int(begin) * 1_000_000), end=Instant(int(stop) * 1_000_000)
                )
                assert drawn(page) == answered(store.answer(asked), "90")
            windows = {t for t, _ in drawn(page)}
            assert len(windows) <= 62 and len(windows) == (max(windows) - min(windows)) // 1000 + 1
            assert max(windows) == (zero + last * SECOND) // 1_000_000 and min(windows) <= begin + 1000
            if TURNS <= 60:  # pictures are filled anew, and made anew only once Vega holds too much of what went
                assert page.evaluate("kept === tailboard.views.percentiles")
            assert page.evaluate("[tailboard.live.failed, tailboard.frames.length <= 4000]") == [0, True]
        assert server.stop() == (130, "")
    print(f"heap {heaps}; resident {sizes}")
    if TURNS >= 60:
        third = len(heaps) // 3  # what went is forgotten in batches, and with the chart: a saw, of which the troughs tell
        assert third and min(heaps[-third:]) - min(heaps[:third]) < 3_000_000, heaps
        assert min(sizes[-third:]) - min(sizes[:third]) < 8_000_000, sizes


@pytest.mark.slow
def test_what_was_chosen_stays(looking, url):
    with serving(url, refresh_ns=SECOND // 2) as port, looking(f"http://127.0.0.1:{port}/") as page:
        settle(page)
        choose(page, "op", "write")
        choose(page, "p", "97.5")
        drag(page, "percentiles", (ZERO + 5 * SECOND) / 1e6, (ZERO + 15 * SECOND) / 1e6)
        zoom = page.evaluate("[tailboard.state.from, tailboard.state.to]")
        assert abs(float(zoom[0]) - 5) < 1 and abs(float(zoom[1]) - 15) < 1
        text = hovered(page, "percentiles", "steps")
        before = page.evaluate("scrollY")
        page.mouse.wheel(0, 23)
        until(page, f"scrollY === {before + 23}")  # it scrolls when it is drawn next
        page.locator("#more").evaluate("fold => (fold.open = true)")
        page.locator("input[name=sla]").focus()
        page.keyboard.type("3")  # and not entered yet
        page.locator("#choose").evaluate("menu => (menu.open = true)")
        where = "[Math.round(document.getElementById('percentiles').getBoundingClientRect().top), location.hash]"
        seen = page.evaluate(where)
        taken = page.evaluate("tailboard.live.taken")
        for at in range(30, 33):
            put(url, plain(range(at, at + 1)) + plain(range(at, at + 1), "write", "h2", base=1100))
            until(page, f"tailboard.live.taken > {taken}")
            settle(page)
            taken = page.evaluate("tailboard.live.taken")
        assert page.evaluate(where) == seen
        assert page.evaluate("[tailboard.state.from, tailboard.state.to, tailboard.state.op, tailboard.state.p]") == [
            *zoom,
            "write",
            "97.5",
        ]
        assert page.evaluate("[document.activeElement.name, document.activeElement.value]") == ["sla", "3"]
        assert page.locator("#choose").evaluate("menu => menu.open")
        assert page.locator("#vg-tooltip-element").inner_text() == text
        assert {(t - ZERO / 1e6) // 1000 for t, _ in drawn(page)} == set(range(int(float(zoom[0])), -int(-float(zoom[1]) // 1)))
        page.keyboard.press("Tab")
        settle(page)
        assert page.evaluate("tailboard.state.sla") == "3"
        page.keyboard.press("Escape")
        settle(page)
        assert len({t for t, _ in drawn(page)}) == 33
        page.reload()
        settle(page)
        assert page.evaluate("[tailboard.state.op, tailboard.state.p, tailboard.state.sla]") == ["write", "97.5", "3"]


@pytest.mark.slow
def test_runs_are_chosen_in_the_page(looking, tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    for number, name in enumerate(("first", "second", "third")):
        put(url, plain(range(10 + number)), name, zero=ZERO + number * 3600 * SECOND)
    with serving(url, refresh_ns=SECOND // 2) as port, looking(f"http://127.0.0.1:{port}/#p=95") as page:
        settle(page)
        assert page.title() == "Latency of third"
        assert page.locator("#chosen").inner_text() == "1 of 3, third"
        page.locator("#choose summary").click()
        assert page.locator("#offered input").evaluate_all("boxes => boxes.map(({ value, checked }) => [value, checked])") == [
            ["third", True],
            ["second", False],
            ["first", False],
        ]
        page.locator("#newest").uncheck()
        until(page, "location.search === '?run=third'")
        page.locator("#offered input[value=first]").check()
        page.wait_for_url("**/?run=*first*")
        until(page, "document.title === 'Latency of first, third' && tailboard.views.load")  # loaded anew: it has other panels
        settle(page)
        assert page.evaluate("tailboard.content.runs.map(({ name }) => name)") == ["first", "third"]
        assert page.evaluate("tailboard.state.p") == "95"
        page.locator("#newest").check()  # where one chose from is open still
        until(page, "document.title === 'Latency of third' && !document.getElementById('load') && tailboard.views.rate")
        put(url, plain(range(20)), "fourth", zero=ZERO + 9 * 3600 * SECOND)
        until(page, "document.title === 'Latency of fourth' && tailboard.content.runs[0].name === 'fourth'")
        settle(page)
        assert len({t for t, _ in drawn(page)}) == 20
        assert page.locator("#chosen").inner_text() == "1 of 4, fourth"


@pytest.mark.slow
def test_what_comes_while_the_page_is_drawn_is_drawn_too(looking, tmp_path):
    """Panels that were still to be drawn were drawn of the data before, and stayed so until more came."""
    url = f"sqlite:{tmp_path / 'a.db'}"
    put(url, plain(range(12)), "run")
    with serving(url, refresh_ns=3600 * SECOND) as port, looking(f"http://127.0.0.1:{port}/") as page:
        settle(page)
        page.evaluate("async () => { window.before = (await (await fetch('/data')).json()).data; }")
        put(url, plain(range(20)), "run")
        page.evaluate("""async () => {
            const unpack = tailboard.unpack;
            let next;
            do next = await (await fetch("/data")).json(); while (next.data === window.before);  // an answer is kept for up to a second
            tailboard.unpack = async (text) => {
              const content = await unpack(text);
              drawing.refresh();
              await new Promise((drawn) => requestAnimationFrame(drawn));
              return content;
            };
            await controls.renewed(next.data);
        }""")
        settle(page)
        assert len({t for t, _ in drawn(page)}) == 20


@pytest.mark.slow
def test_range_and_step_are_chosen_in_the_page(looking, tmp_path):
    url, now = f"sqlite:{tmp_path / 'a.db'}", time.time_ns() // SECOND * SECOND
    put(url, plain(range(0, 900, 3)), zero=now - 900 * SECOND)
    with serving(url, refresh_ns=SECOND // 2) as port, looking(f"http://127.0.0.1:{port}/") as page:
        settle(page)
        span = "tailboard.content.runs[0].end - tailboard.content.runs[0].begin"
        assert page.evaluate(span) > 890_000
        page.locator("#reach").select_option("now-5m")
        until(page, f"{span} < 310000")
        assert page.evaluate("location.search") == "?from=now-5m"
        page.locator("#width").select_option("10s")
        until(page, "tailboard.content.runs[0].levels.cluster.step === 10000")
        settle(page)
        assert page.evaluate("location.search") == "?from=now-5m&step=10s"
        begin = page.evaluate("tailboard.content.runs[0].begin")
        until(page, f"tailboard.content.runs[0].begin > {begin}")  # the range moves on with the clock
        page.reload()
        settle(page)
        assert page.locator("#reach").input_value() == "now-5m" and page.locator("#width").input_value() == "10s"
        page.locator("#reach").select_option("")
        page.locator("#width").select_option("")
        until(page, f"{span} > 890000")
        assert page.evaluate("location.search") == ""


@pytest.mark.slow
def test_a_page_that_pauses_asks_nothing(looking, url):
    with serving(url, refresh_ns=SECOND // 2) as port, looking(f"http://127.0.0.1:{port}/") as page:
        settle(page)
        page.get_by_role("button", name="Pause").click()
        put(url, plain(range(30, 40)))
        page.wait_for_timeout(700)
        asked = len(page.asked)
        page.wait_for_timeout(1500)
        assert len(page.asked) == asked
        assert re.fullmatch(r"paused: data of \d\d:\d\d:\d\d UTC", page.locator("#updated").inner_text())
        assert page.evaluate(SAMPLES) == 30 * 204
        page.get_by_role("button", name="Go on").click()
        until(page, f"{SAMPLES} === {30 * 204 + 1020}")
        until(page, "/^updated \\d s ago$/.test(document.getElementById('updated').textContent)")


@pytest.mark.slow
def test_in_the_background_it_asks_less(looking, url):
    hide = "Object.defineProperty(document, 'hidden', { get: () => window.away ?? false });"
    note = "const later = setTimeout; window.setTimeout = (what, ms) => (what.name === 'ask' && turns.push(ms), later(what, ms));"
    script = f"window.turns = []; {hide} {note}"
    with serving(url, refresh_ns=SECOND // 2) as port, looking(f"http://127.0.0.1:{port}/", script=script) as page:
        settle(page)
        until(page, "turns.length >= 3")
        assert set(page.evaluate("turns")) == {500}
        page.evaluate("window.away = true")
        until(page, "turns.at(-1) === 3000")  # after the turn that is under way
        before = page.evaluate("turns.length")
        until(page, f"turns.length > {before}")
        assert set(page.evaluate(f"turns.slice({before})")) == {3000}
        asked = page.evaluate(
            "() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); return tailboard.live.asked; }"
        )
        before = page.evaluate("turns.length")
        assert asked > 3  # it has asked at once
        until(page, "turns.at(-1) === 500")
        until(page, f"turns.length > {before} + 2 && turns.slice({before} + 1).every((ms) => ms === 500)")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.slow
def test_a_server_that_is_gone_is_told_and_found_again(looking, url):
    port = free_port()
    with Command(url, "--refresh", "500ms", port=port) as server, looking(server.url, fails=True) as page:
        settle(page)
        server.stop()
        until(page, "!document.getElementById('trouble').hidden")
        told = page.locator("#trouble").inner_text()
        assert re.fullmatch(r"tailboard report --live does not answer: last data of \d\d:\d\d:\d\d UTC\.", told)
        assert page.evaluate(SAMPLES) == 30 * 204
        put(url, plain(range(30, 40)))
        with Command(url, "--refresh", "500ms", port=port):
            until(page, f"{SAMPLES} === {30 * 204 + 1020}")
            until(page, "document.getElementById('trouble').hidden")
            assert page.evaluate("document.getElementById('updated').textContent").startswith("updated ")


@pytest.mark.slow
def test_a_store_that_is_gone_is_told_and_found_again(looking, url, tmp_path):
    with serving(url, refresh_ns=SECOND // 2) as port, looking(f"http://127.0.0.1:{port}/", fails=True) as page:
        settle(page)
        shutil.move(tmp_path / "a.db", tmp_path / "b.db")
        until(page, "!document.getElementById('trouble').hidden")
        assert re.fullmatch(r"there is no store at .*: last data of \d\d:\d\d:\d\d UTC\.", page.locator("#trouble").inner_text())
        shutil.move(tmp_path / "b.db", tmp_path / "a.db")
        until(page, "document.getElementById('trouble').hidden")


@pytest.mark.slow
def test_a_page_waits_for_the_first_run(looking, tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    with open_store(url, write=True):
        pass
    with serving(url, refresh_ns=SECOND // 2) as port, looking(f"http://127.0.0.1:{port}/#p=75", fails=True) as page:
        assert page.locator("#reason").inner_text() == "no run here yet: this page shows the first that is loaded"
        put(url, plain(range(8)))
        until(page, "window.tailboard?.views.rate")
        settle(page)
        assert page.evaluate("tailboard.state.p") == "75" and page.evaluate(SAMPLES) == 8 * 102


@pytest.mark.slow
def test_hostile_labels_do_nothing(looking, tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    rows = [(series(label, label, label), at, {900 + code: 500}) for code, label in enumerate(HOSTILE) for at in range(3)]
    put(url, rows, HOSTILE[0])
    put(url, rows, HOSTILE[1], zero=ZERO - 99 * SECOND)
    with serving(url, refresh_ns=SECOND // 2) as port, looking(f"http://127.0.0.1:{port}/") as page:
        settle(page)
        put(url, [(one, 3, bins) for one, at, bins in rows if at == 0], HOSTILE[0])
        until(page, "tailboard.live.taken > 0")
        settle(page)
        page.locator("#choose summary").click()
        assert HOSTILE[1] in page.locator("#offered").inner_text()
        assert page.title() == f"Latency of {HOSTILE[0]}"
        page.locator("#offered input").nth(1).check()
        until(page, "tailboard.views.load && document.getElementById('choose').open")
        page.locator("#offered input").nth(0).uncheck()
        until(page, "document.title.startsWith('Latency of <img') && !document.getElementById('load') && tailboard.views.rate")
        settle(page)
        assert page.evaluate("typeof hacked") == "undefined"
        assert page.evaluate("document.querySelectorAll('main img, main script, main b b').length") == 0


@pytest.mark.slow
def test_a_watched_run_is_followed_until_it_is_settled(looking, tmp_path):
    url, clock, writer = (
        f"sqlite:{tmp_path / 'a.db'}",
        Clock(),
        Writer(tmp_path / "logs" / "h1" / "x.hlog", random.Random(3), rows=40),
    )
    with open_store(url, write=True) as store, serving(url, refresh_ns=SECOND // 2) as port:
        watch = begun(tmp_path / "logs", store, clock)
        watched = [writer.write(6000) or watch.cycle() for _ in range(4)]
        assert any(cycle.news for cycle in watched)
        with looking(f"http://127.0.0.1:{port}/#by=op") as page:
            settle(page)
            for _ in range(6):
                writer.write(9000)
                clock.seconds += 1
                watch.cycle()
                with open_store(url) as reader:
                    (record,) = reader.runs()
                    answer = reader.answer(Question(by=("op",), step=SECOND))
                until(page, f"{SAMPLES} === {answer.samples}")
                settle(page)
                assert drawn(page) == answered(answer, "99")
                assert record.state == WATCHED
                final = time.strftime("final up to %H:%M:%S UTC", time.gmtime(record.final_ns // SECOND))
                until(page, f"document.getElementById('final').textContent === {final!r}")
                shown = [(mark["text"], mark["t"]) for mark in rows_of(page, "percentiles", "marks")]
                rejected = "samples are missing"  # lines of the log that are none
                assert [mark for mark in shown if mark[0] != rejected] == [("provisional from here on", record.final_ns / 1e6)]
            writer.rest()
            writer.stream.close()
            while watch.cycle().news:
                clock.seconds += 1
            watch.cycle(last=True)
            watch.settle()
            with open_store(url) as reader:
                answer = reader.answer(Question(by=("op",), step=SECOND))
            until(page, f"{SAMPLES} === {answer.samples}")
            until(page, "document.getElementById('final').textContent === ''")
            settle(page)
            assert drawn(page) == answered(answer, "99")
            assert {mark["text"] for mark in rows_of(page, "percentiles", "marks")} == {rejected}


@pytest.mark.slow
def test_elasticsearch_is_followed_too(looking, tmp_path):
    with ElasticsearchDouble(version=SERVER) as double:
        ground = ElasticGround(double.url)
        put(ground.url, plain(range(5)))
        with serving(ground.url, refresh_ns=SECOND) as port, looking(f"http://127.0.0.1:{port}/") as page:
            settle(page)
            for last in range(6, 9):
                put(ground.url, plain(range(last - 1, last)))
                until(page, f"{SAMPLES} === {last * 102}")
            settle(page)
            with open_store(ground.url) as store:
                assert drawn(page) == answered(store.answer(Question(by=("op",), step=SECOND)), "99")
        assert not double.refusals
