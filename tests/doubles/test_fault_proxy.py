"""The fault proxy: each fault against a small server that counts what really reached it, and what the real client makes of it."""

from __future__ import annotations

import gzip
import http.client
import itertools
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import elastic_transport
import pytest
from elasticsearch import ApiError, Elasticsearch, NotFoundError, helpers
from elasticsearch import ConnectionError as ClientConnectionError

from tests.doubles.fault_proxy import ALL, Fault, FaultProxy
from tests.doubles.faults import Request, bulk_items, filtered, planned

pytestmark = [pytest.mark.contract, pytest.mark.slow]
PATIENCE = 0.25


class Target:
    """A server that keeps bulk documents: `store` by index and id with how often each was written, `seen` all requests."""

    def __init__(self) -> None:
        self.store: dict[tuple[str, str], tuple[int, object]] = {}
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections: set[tuple[str, int]] = set()
        self.status = 200
        self.chunked = False
        self.leave_after_each = False
        target = self

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                target.connections.add(self.client_address)
                target.seen.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                status, got = target.respond(self.command, self.path, body)
                text = json.dumps(got).encode()
                self.send_response(status)
                self.send_header("X-Elastic-Product", "Elasticsearch")
                self.send_header("Content-Type", self.headers.get("Accept", "application/json"))
                if target.chunked:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.wfile.write(b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (text[:7], text[7:], b"")))
                else:
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(b"" if self.command == "HEAD" else text)
                self.close_connection = self.close_connection or target.leave_after_each

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # the proxy hangs up where it is told to

        self.server = Server(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def respond(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        if path.startswith("/missing"):
            return 404, {"error": {"type": "index_not_found_exception", "reason": "no such index"}, "status": 404}
        if self.status != 200 or "/_bulk" not in path:
            return self.status, {"version": {"number": "9.5.3"}, "method": method}
        items, lines = [], iter(body.decode().splitlines())
        for line in lines:
            ((op, words),) = json.loads(line).items()
            key = (words.get("_index", path.split("/")[1]), words["_id"])
            if op == "delete":
                items.append({op: {"_index": key[0], "_id": key[1], "status": 200 if self.store.pop(key, None) else 404}})
                continue
            times, _ = self.store.get(key, (0, None))
            self.store[key] = (times + 1, json.loads(next(lines)))
            items.append({op: {"_index": key[0], "_id": key[1], "status": 200 if times else 201}})
        return 200, {"errors": False, "took": 3, "items": items}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def target() -> Iterator[Target]:
    one = Target()
    yield one
    one.close()


def bulk(*ids: str, index: str = "i") -> bytes:
    return b"".join(
        json.dumps(part).encode() + b"\n" for name in ids for part in ({"index": {"_index": index, "_id": name}}, {"n": name})
    )


def always(target: Target, *faults: Fault, **words: object) -> FaultProxy:
    return FaultProxy(target.url, share=1.0, faults=faults, **words)


def ask(proxy: FaultProxy, body: bytes = b"", path: str = "/_bulk", method: str = "POST", timeout: float = 300, **headers: str):
    place = urlsplit(proxy.url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=timeout)
    try:
        connection.request(method, path, body, {"Content-Type": "application/x-ndjson", **headers})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def until(condition, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


# what is relayed


def test_without_faults_everything_passes_unchanged_over_one_connection(target: Target) -> None:
    with FaultProxy(target.url, share=0) as proxy:
        place = urlsplit(proxy.url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=300)
        for number in range(5):
            connection.request(
                "POST", "/_bulk?x=%20y", bulk(str(number)), {"Content-Type": "application/x-ndjson", "X-Mine": "1"}
            )
            answer = connection.getresponse()
            assert (answer.status, json.loads(answer.read())["items"][0]["index"]["status"]) == (200, 201)
            assert answer.headers["X-Elastic-Product"] == "Elasticsearch"
        connection.request("HEAD", "/_index_template/x")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 10
        connection.close()
        assert (proxy.calls, proxy.injected, proxy.unreachable) == (6, Counter(), 0)
    assert len(target.connections) == 1, "the way to the target is kept open as well"
    method, path, headers, body = target.seen[0]
    assert (method, path, headers["x-mine"], body) == ("POST", "/_bulk?x=%20y", "1", bulk("0"))
    assert "accept-encoding" not in target.seen[0][2] or target.seen[0][2]["accept-encoding"] == "identity"


def test_chunked_both_ways_gzip_and_expect_continue(target: Target) -> None:
    target.chunked = True
    body = bulk("a", "b")
    with FaultProxy(target.url, share=0) as proxy:
        place = urlsplit(proxy.url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=300)
        connection.request(
            "POST", "/_bulk", iter([body[:9], body[9:]]), {"Content-Type": "application/x-ndjson"}, encode_chunked=True
        )
        assert len(json.loads(connection.getresponse().read())["items"]) == 2
        connection.close()
        status, _, _ = ask(proxy, gzip.compress(bulk("c")), **{"Content-Encoding": "gzip"})
        assert status == 200
        raw = socket.create_connection((place.hostname, place.port), timeout=300)
        raw.sendall(b"POST /_bulk HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body))
        assert raw.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.sendall(body)
        assert raw.recv(100).startswith(b"HTTP/1.1 200 ")
        raw.close()
    assert [times for times, _ in target.store.values()] == [2, 2, 1]
    assert target.seen[0][3] == body


def test_a_target_that_closes_its_connections_is_reached_again_and_nothing_is_sent_twice(target: Target) -> None:
    target.leave_after_each = True
    with FaultProxy(target.url, share=0) as proxy:
        place = urlsplit(proxy.url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=300)
        for number in range(20):
            connection.request("POST", "/_bulk", bulk(str(number)))
            assert connection.getresponse().read()
            time.sleep(0.005)
        connection.close()
        assert proxy.unreachable == 0
    assert [times for times, _ in target.store.values()] == [1] * 20


def test_a_target_that_is_not_there_is_told_apart_from_a_fault() -> None:
    gone = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    gone.close()
    with FaultProxy(url, share=0) as proxy:
        status, _, body = ask(proxy, bulk("a"))
        assert status == 502 and b"target failed" in body
        assert (proxy.unreachable, proxy.injected) == (1, Counter())


def test_spared_calls_have_no_number_and_the_faults_of_the_others_do_not_move(target: Target) -> None:
    hit = []
    for spared in (0, 7):
        with FaultProxy(
            target.url, seed=3, share=0.5, faults=[Fault.REJECT], only=lambda _, path: path.endswith("/_bulk")
        ) as proxy:
            for _ in range(spared):
                assert ask(proxy, method="GET", path="/")[0] == 200
            hit.append([ask(proxy, bulk(str(number)))[0] for number in range(30)])
            assert proxy.calls == 30 + spared
            assert all(call.fault is None for call in proxy.history if call.number is None)
    assert hit[0] == hit[1]
    assert set(hit[0]) == {200, 429}


# which call meets which fault


def test_the_plan_depends_on_seed_and_number_alone_and_keeps_its_share() -> None:
    plans = [planned(7, number, 0.3, ALL) for number in range(20_000)]
    assert plans == [planned(7, number, 0.3, tuple(reversed(ALL))) for number in range(20_000)]
    assert plans[:500] != [planned(8, number, 0.3, ALL) for number in range(500)]
    hit = [plan for plan in plans if plan]
    assert 0.285 < len(hit) / len(plans) < 0.315
    assert all(sorted(plan) == sorted(ALL) for plan in hit)
    firsts = Counter(plan[0] for plan in hit)
    assert set(firsts) == set(ALL)
    assert min(firsts.values()) > 0.8 * len(hit) / len(ALL)


def outcomes(url: str, calls: int) -> list[str]:
    found = []
    for number in range(calls):
        try:
            found.append(str(ask(FaultProxyAt(url), bulk(f"{number}-a", f"{number}-b", f"{number}-c"), timeout=PATIENCE)[:1]))
        except (OSError, http.client.HTTPException) as error:
            found.append(type(error).__name__)
    return found


class FaultProxyAt:
    """Only an address, for `ask`."""

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.mark.slow
def test_the_same_seed_repeats_a_whole_run(target: Target) -> None:
    runs = []
    for seed in (5, 5, 6):
        target.store.clear()
        faults = [fault for fault in ALL if fault is not Fault.DOWN]  # how many calls fall into its absence is a matter of time
        with FaultProxy(target.url, seed=seed, share=0.5, faults=faults) as proxy:
            runs.append((outcomes(proxy.url, 60), [call.fault for call in proxy.history], sorted(target.store)))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert 0.3 < sum(fault is not None for fault in runs[0][1]) / 60 < 0.7


def test_many_senders_at_once_number_every_call_once(target: Target) -> None:
    with FaultProxy(target.url, seed=9, share=0.4, faults=[Fault.REJECT, Fault.RESET_AFTER]) as proxy:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda part: outcomes(proxy.url, 25), range(8)))
        assert sorted(call.number for call in proxy.history) == list(range(200))
        assert all(call.fault == next(iter(planned(9, call.number, 0.4, proxy.faults)), None) for call in proxy.history)
        assert sum(proxy.injected.values()) == sum(bool(planned(9, number, 0.4, proxy.faults)) for number in range(200))


def test_bulk_faults_leave_other_calls_and_single_documents_alone(target: Target) -> None:
    with always(target, Fault.TOO_LARGE, Fault.REJECT_ITEMS) as proxy:
        assert ask(proxy, b"{}", path="/i/_search")[0] == 200
        assert ask(proxy, bulk("a"))[2].count(b'"status": 429') == 1, "one document is rejected, but never too large"
        assert proxy.injected == {"reject_items": 1}
    with always(target, Fault.TOO_LARGE) as proxy:
        assert ask(proxy, bulk("a"))[0] == 200
    with always(target, Fault.TRUNCATE) as proxy:
        assert ask(proxy, method="HEAD", path="/")[0] == 200


# each fault, with plain sockets: what the client sees, what was written

BROKEN = (
    (Fault.REFUSE, http.client.RemoteDisconnected, 0),
    (Fault.RESET_BEFORE, ConnectionResetError, 0),
    (Fault.RESET_AFTER, ConnectionResetError, 1),
    (Fault.TIMEOUT_BEFORE, TimeoutError, 0),
    (Fault.TIMEOUT_AFTER, TimeoutError, 1),
    (Fault.TIMEOUT_LATE, TimeoutError, 1),
    (Fault.TRUNCATE, http.client.IncompleteRead, 1),
)


@pytest.mark.parametrize(("fault", "error", "written"), BROKEN)
def test_broken_connections(target: Target, fault: Fault, error: type[Exception], written: int) -> None:
    assert (written > 0) == fault.written
    with always(target, fault) as proxy:
        with pytest.raises(error) as raised:
            ask(proxy, bulk("a", "b"), timeout=PATIENCE)
        assert type(raised.value) is error
        until(lambda: len(target.store) == 2 * written)
        assert proxy.injected == {fault: 1}
    assert [times for times, _ in target.store.values()] == [1, 1] * written


def test_a_late_call_reaches_the_target_only_after_the_client_gave_up(target: Target) -> None:
    with always(target, Fault.TIMEOUT_LATE) as proxy:
        place = urlsplit(proxy.url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=PATIENCE)
        connection.request("POST", "/_bulk", bulk("a"))
        with pytest.raises(TimeoutError):
            connection.getresponse()
        assert target.seen == []
        connection.close()
        until(lambda: target.store)


def test_a_large_body_is_cut_off_before_it_is_read(target: Target) -> None:
    with always(target, Fault.RESET_BEFORE) as proxy, pytest.raises((ConnectionResetError, BrokenPipeError)):
        ask(proxy, bulk("a") * 400_000)
    assert target.seen == []


def test_a_large_body_after_a_refusal_ends_without_hanging(target: Target) -> None:
    with always(target, Fault.REFUSE) as proxy, pytest.raises(http.client.RemoteDisconnected):
        ask(proxy, bulk("a") * 400_000)
    assert target.seen == []


def test_down_refuses_connections_for_a_moment_at_the_same_port(target: Target) -> None:
    refused = 0
    with always(target, Fault.DOWN, away=0.7, only=lambda method, _: method == "POST") as proxy:
        for _ in range(3):
            with pytest.raises(http.client.RemoteDisconnected):
                ask(proxy, bulk("a"))
            while True:
                try:
                    assert ask(proxy, method="GET", path="/")[0] == 200
                    break
                except ConnectionRefusedError:
                    refused += 1
                    time.sleep(0.02)
        assert proxy.injected == {"down": 3}
    assert target.store == {} and refused


def test_the_proxy_can_be_left_while_it_is_down_and_while_it_withholds_an_answer(target: Target) -> None:
    """Else this would take an hour."""
    with always(target, Fault.DOWN, away=3600) as proxy, pytest.raises(http.client.RemoteDisconnected):
        ask(proxy, bulk("a"))
    with always(target, Fault.TIMEOUT_BEFORE, hold=3600) as proxy:
        threading.Thread(target=outcomes, args=(proxy.url, 1), daemon=True).start()
        until(lambda: proxy.calls)
    assert not [thread.name for thread in threading.enumerate() if "fault-proxy" in thread.name]


ANSWERS = (
    (Fault.REJECT, 429, 0, "es_rejected_execution_exception"),
    (Fault.UNAVAILABLE, 503, 0, "cluster_block_exception"),
    (Fault.BAD_GATEWAY, 502, 0, None),
    (Fault.BAD_GATEWAY_AFTER, 502, 1, None),
)


@pytest.mark.parametrize(("fault", "status", "written", "kind"), ANSWERS)
def test_whole_answers(target: Target, fault: Fault, status: int, written: int, kind: str | None) -> None:
    with always(target, fault) as proxy:
        got, headers, body = ask(proxy, bulk("a", "b"))
        assert got == status
        assert headers.get("X-Elastic-Product") == ("Elasticsearch" if kind else None)
        if kind:
            assert json.loads(body)["error"]["type"] == kind
            assert json.loads(body)["status"] == status
    assert len(target.store) == 2 * written


def test_too_large_is_empty_without_product_header_and_closes(target: Target) -> None:
    with always(target, Fault.TOO_LARGE) as proxy:
        status, headers, body = ask(proxy, bulk("a", "b"))
    assert (status, body, headers) == (413, b"", {"Content-Length": "0", "Connection": "close"})
    assert target.seen == []


# some items of a bulk

MIXED = (
    b'{"index":{"_index":"i","_id":"1"}}\n{"n":1}\n{"delete":{"_index":"i","_id":"old"}}\n{"create":{"_index":"j","_id":"2"}}\n{"n":2}\n'
    b'{"index":{"_id":"3"}}\n{"n":3}\n{"delete":{"_id":"4"}}\n'
)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("zipped", [False, True])
def test_rejected_items_are_not_written_the_others_are_and_the_order_is_kept(target: Target, seed: int, zipped: bool) -> None:
    target.store[("i", "old")] = (1, {})
    body, headers = (gzip.compress(MIXED), {"Content-Encoding": "gzip"}) if zipped else (MIXED, {})
    with always(target, Fault.REJECT_ITEMS, seed=seed) as proxy:
        status, reply, text = ask(proxy, body, path="/p/_bulk?refresh=false", **headers)
    got = json.loads(text)
    assert (status, reply["X-Elastic-Product"], got["errors"]) == (200, "Elasticsearch", True)
    sent = [("index", "i", "1"), ("delete", "i", "old"), ("create", "j", "2"), ("index", "p", "3"), ("delete", "p", "4")]
    answered = [(op, words["_index"], words["_id"]) for item in got["items"] for op, words in item.items()]
    assert answered == sent
    states = [words["status"] for item in got["items"] for words in item.values()]
    assert states.count(429) >= 1
    assert all(("error" in words) == (words["status"] == 429) for item in got["items"] for words in item.values())
    expected = {("i", "old")} - ({("i", "old")} if states[1] == 200 else set())
    expected |= {(index, name) for (op, index, name), state in zip(sent, states) if op != "delete" and state == 201}
    assert set(target.store) == expected
    assert all("refresh=false" in path for _, path, _, _ in target.seen)


def test_over_many_seeds_about_half_of_the_items_are_rejected_sometimes_all(target: Target) -> None:
    states, forwarded = Counter(), Counter()
    with always(target, Fault.REJECT_ITEMS) as proxy:
        for number in range(60):
            items = json.loads(ask(proxy, bulk(*(f"{number}-{part}" for part in "abcd")))[2])["items"]
            found = [item["index"]["status"] for item in items]
            states.update(found)
            forwarded[found.count(201)] += 1
    assert set(states) == {201, 429}
    assert 0.4 < states[429] / 240 < 0.65
    assert set(forwarded) == {0, 1, 2, 3}
    assert len(target.store) == states[201]
    assert len(target.seen) == 60 - forwarded[0], "a bulk of which nothing is left is not forwarded"


def test_filter_path_is_obeyed_in_the_merged_answer(target: Target) -> None:
    with always(target, Fault.REJECT_ITEMS) as proxy:
        body = bulk(*"abcdef")
        path = "/_bulk?filter_path=errors,items.*.status,items.*.error.type"
        got = json.loads(ask(proxy, body, path=path)[2])
        assert set(got) == {"errors", "items"}
        assert len(got["items"]) == 6
        kinds = Counter(json.dumps(item["index"], sort_keys=True) for item in got["items"])
        assert set(kinds) == {'{"status": 201}', '{"error": {"type": "es_rejected_execution_exception"}, "status": 429}'}
        only_errors = json.loads(ask(proxy, bulk(*"ghijkl"), path="/_bulk?filter_path=items.*.error")[2])
        assert 0 < len(only_errors["items"]) <= 6
    assert all("filter_path" not in path for _, path, _, _ in target.seen)
    with always(target, Fault.REJECT_ITEMS) as proxy:
        assert ask(proxy, body, path="/_bulk?filter_path=-items")[0] == 200
        assert proxy.injected == {}, "exclusions are not understood, so such a call is left alone"


def test_filtering() -> None:
    value = {"a": [{"x": {"status": 1, "k": 0}}, {"y": {"k": 2}}], "b": {"c": {"status": 3}}, "took": 1}
    split = lambda *paths: [path.split(".") for path in paths]
    assert filtered(value, split("took")) == {"took": 1}
    assert filtered(value, split("a.*.status")) == {"a": [{"x": {"status": 1}}]}
    assert filtered(value, split("**.status")) == {"a": [{"x": {"status": 1}}], "b": {"c": {"status": 3}}}
    assert filtered(value, split("a.x.k", "b", "t*")) == {"a": [{"x": {"k": 0}}], "b": {"c": {"status": 3}}, "took": 1}
    assert filtered(value, split("nothing")) is None


def test_items_of_what_is_no_bulk() -> None:
    for body in (b"", b"{", b'{"index":{}}\n', b'{"index":{}}\n{}', b"[1]\n{}\n", b'{"index":1}\n{}\n', b'{"a":{},"b":{}}\n{}\n'):
        found = bulk_items(Request("POST", "/_bulk", [], body))
        assert not found, body
    assert bulk_items(Request("GET", "/_bulk", [], MIXED)) is None
    assert bulk_items(Request("POST", "/_search", [], MIXED)) is None
    assert b"".join(lines for _, _, lines in bulk_items(Request("POST", "/_bulk", [], MIXED))) == MIXED


def test_a_target_that_refuses_the_rest_of_a_bulk_is_heard(target: Target) -> None:
    target.status = 503
    with always(target, Fault.REJECT_ITEMS) as proxy:
        assert ask(proxy, bulk(*"abcdefgh"))[0] == 503


# the real client

CLIENT = (
    (Fault.REFUSE, ClientConnectionError, None, 0),
    (Fault.DOWN, ClientConnectionError, None, 0),
    (Fault.RESET_BEFORE, ClientConnectionError, None, 0),
    (Fault.RESET_AFTER, ClientConnectionError, None, 1),
    (Fault.TIMEOUT_BEFORE, elastic_transport.ConnectionTimeout, None, 0),
    (Fault.TIMEOUT_AFTER, elastic_transport.ConnectionTimeout, None, 1),
    (Fault.TIMEOUT_LATE, elastic_transport.ConnectionTimeout, None, 1),
    (Fault.REJECT, ApiError, 429, 0),
    (Fault.UNAVAILABLE, ApiError, 503, 0),
    (Fault.BAD_GATEWAY, ApiError, 502, 0),
    (Fault.BAD_GATEWAY_AFTER, ApiError, 502, 1),
    (Fault.TOO_LARGE, ApiError, 413, 0),
    (Fault.TRUNCATE, ClientConnectionError, None, 1),
)


@pytest.mark.parametrize(("fault", "error", "status", "written"), CLIENT)
def test_what_the_real_client_raises(
    target: Target, fault: Fault, error: type[Exception], status: int | None, written: int
) -> None:
    with always(target, fault) as proxy, Elasticsearch(proxy.url, request_timeout=PATIENCE, max_retries=0) as client:
        with pytest.raises(error) as raised:
            client.bulk(body=bulk("a", "b"))
        assert type(raised.value) is error
        assert getattr(raised.value, "status_code", None) == status
        until(lambda: len(target.store) == 2 * written)
        assert proxy.calls == 1, "max_retries=0 means one call"


def test_every_fault_is_in_the_table_of_the_client() -> None:
    assert {fault for fault, *_ in CLIENT} | {Fault.REJECT_ITEMS} == set(Fault)


def test_the_real_client_meets_a_port_that_refuses(target: Target) -> None:
    with (
        always(target, Fault.DOWN, away=0.5) as proxy,
        Elasticsearch(proxy.url, request_timeout=PATIENCE, max_retries=0) as client,
    ):
        with pytest.raises(ClientConnectionError):
            client.bulk(body=bulk("a"))
        with pytest.raises(ClientConnectionError) as raised:
            client.bulk(body=bulk("a"))
        assert "refused" in str(raised.value.message)


def test_the_real_client_gets_rejected_items_one_by_one(target: Target) -> None:
    with always(target, Fault.REJECT_ITEMS) as proxy, Elasticsearch(proxy.url, max_retries=0) as client:
        actions = [{"_op_type": "index", "_index": "i", "_id": str(number), "_source": {"n": number}} for number in range(40)]
        found = list(helpers.streaming_bulk(client, actions, raise_on_error=False, max_retries=0))
        states = [item["index"]["status"] for _, item in found]
        assert [ok for ok, _ in found] == [state == 201 for state in states]
        assert set(states) == {201, 429}
        assert {name for _, name in target.store} == {str(number) for number, state in enumerate(states) if state == 201}


def test_errors_of_the_target_itself_pass(target: Target) -> None:
    with FaultProxy(target.url, share=0) as proxy, Elasticsearch(proxy.url) as client, pytest.raises(NotFoundError):
        client.search(index="missing")


@pytest.mark.slow
def test_a_sender_that_repeats_until_all_is_acknowledged_ends_with_each_document_there(target: Target) -> None:
    """The proxy as it will be used: a naive loop of repeats over all faults ends complete, and some writes happened twice."""
    names = [f"{chunk}-{number}" for chunk in range(60) for number in range(5)]
    with (
        FaultProxy(target.url, seed=11, share=0.5, away=0.05) as proxy,
        Elasticsearch(proxy.url, request_timeout=PATIENCE, max_retries=0) as client,
    ):
        for place in range(0, len(names), 5):
            left = names[place : place + 5]
            size = len(left)
            for _ in itertools.takewhile(lambda _: left, range(200)):
                try:
                    items = client.bulk(body=bulk(*left[:size]))["items"]
                except ApiError as error:
                    size = max(1, size // 2) if error.status_code == 413 else size
                    continue
                except elastic_transport.TransportError:
                    time.sleep(0.01)
                    continue
                done = {item["index"]["_id"] for item in items if item["index"]["status"] in (200, 201)}
                left = [name for name in left if name not in done]
        assert set(proxy.injected) == {str(fault) for fault in ALL}
    assert {name for _, name in target.store} == set(names)
    assert all(source == {"n": name} for (_, name), (_, source) in target.store.items())
    assert any(times > 1 for times, _ in target.store.values())
