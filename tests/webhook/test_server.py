"""The webhook over TLS: clients as API servers are, and as they should not be."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from hypothesis import Phase, given, settings
from prometheus_client.parser import text_string_to_metric_families

from nri_resmgr.webhook.own_certificates.plan import Pair
from tests.webhook.pods import Json, pods, review
from tests.webhook.rig import (
    NAME,
    RunningWebhook,
    new_pair,
    running_webhook,
    starting_webhook,
    until,
    write_pair,
)

pytestmark = [pytest.mark.process]

POD: Json = {"metadata": {}, "spec": {"containers": [{"name": "web"}]}}


@pytest.fixture(scope="module")
def pair() -> Pair:
    return new_pair()


@pytest.fixture(scope="module")
def webhook(
    pair: Pair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningWebhook]:
    """One process for all tests; whatever one does, the next one is served."""
    folder = tmp_path_factory.mktemp("webhook")
    write_pair(folder, pair)
    with running_webhook(folder, "--log-level", "debug") as found:
        yield found


@pytest.fixture
def own_webhook(tmp_path: Path, pair: Pair) -> Iterator[RunningWebhook]:
    """One whose certificate a test may replace."""
    write_pair(tmp_path, pair)
    with running_webhook(tmp_path) as found:
        yield found


async def test_a_connection_has_many_reviews(
    webhook: RunningWebhook, pair: Pair
) -> None:
    async with webhook.client(pair.authority) as client:
        for _ in range(200):
            assert (await client.post(review(POD))).is_allowed


async def test_a_handshake_sends_no_tickets(
    webhook: RunningWebhook, pair: Pair
) -> None:
    async with webhook.client(pair.authority) as client:
        # They would come before the answer.
        assert (await client.post(review(POD))).is_allowed
        assert not client.has_ticket()


def drawn(count: int) -> list[Json]:
    """Draw pods; a law over them would have an event loop for each."""
    found: list[Json] = []

    @settings(max_examples=count, database=None, phases=[Phase.generate])
    @given(pods())
    def collect(pod: Json) -> None:
        found.append(pod)

    collect()
    return found


async def test_a_thousand_reviews_are_all_allowed(
    webhook: RunningWebhook, pair: Pair
) -> None:
    found = drawn(1000)

    async def post(some: list[Json]) -> None:
        async with webhook.client(pair.authority) as client:
            for pod in some:
                answer = await client.post(review(pod))
                assert answer.is_allowed
                assert "patch" in answer.json["response"]

    # As three API servers with two connections each.
    async with asyncio.timeout(90), asyncio.TaskGroup() as group:
        for first in range(6):
            group.create_task(post(found[first::6]))

    assert len(found) == 1000


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /mutate HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"POST /else HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", 404),
        (b"POST /validate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", 404),
        (b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"POST /mutate HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST /mutate HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /m HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"POST /m HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /m HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 200_000 + b"\r\n\r\n", 431),
    ],
)
async def test_invalid_requests_are_answered(
    webhook: RunningWebhook, pair: Pair, request_: bytes, status: int
) -> None:
    async with webhook.client(pair.authority) as client:
        answer = await client.send(request_)

    assert answer.status == status
    assert answer.headers["connection"] == "close"
    async with webhook.client(pair.authority) as client:
        assert (await client.post(review(POD))).is_allowed


async def test_a_large_review_is_answered_and_a_client_may_ask_first(
    webhook: RunningWebhook, pair: Pair
) -> None:
    text = "\N{SNOWMAN}" * (250_000 // 3)
    pod = {**POD, "metadata": {"annotations": {"big": text}}}
    body = json.dumps(review(pod, operation="UPDATE", before=pod)).encode()
    head = (
        f"POST /mutate HTTP/1.1\r\nHost: {NAME}\r\nExpect: 100-continue\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    async with webhook.client(pair.authority) as client:
        go_on = await client.send(head.encode())
        answer = await client.send(body)

    assert len(body) > 1_000_000
    assert (go_on.status, answer.is_allowed) == (100, True)


async def test_requests_of_all_clients_together_are_bounded(
    webhook: RunningWebhook, pair: Pair
) -> None:
    head = (
        f"POST /mutate HTTP/1.1\r\nHost: {NAME}\r\nExpect: 100-continue\r\n"
        f"Content-Length: {8 << 20}\r\n\r\n"
    ).encode()
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(webhook.client(pair.authority))
            for _ in range(5)
        ]
        statuses = [(await client.send(head)).status for client in clients]

    assert statuses == [100, 100, 100, 100, 503]

    # What clients that disconnect had announced is free again.
    status = 0
    async with asyncio.timeout(60):
        while status != 100:
            async with webhook.client(pair.authority) as client:
                status = (await client.send(head)).status


async def test_clients_beyond_the_limit_replace_idle_ones(
    webhook: RunningWebhook, pair: Pair
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(70):
            client = await stack.enter_async_context(webhook.client(pair.authority))
            assert (await client.post(review(POD))).is_allowed


async def test_clients_that_do_not_speak_tls_take_no_place(
    webhook: RunningWebhook, pair: Pair
) -> None:
    silent = [
        await asyncio.open_connection("127.0.0.1", webhook.port) for _ in range(100)
    ]
    async with webhook.client(pair.authority) as client:
        assert (await client.post(review(POD))).is_allowed
    for _, writer in silent:
        writer.transport.abort()


async def test_a_new_certificate_is_shown_under_load(
    own_webhook: RunningWebhook, pair: Pair
) -> None:
    webhook, other = own_webhook, new_pair()
    both = pair.authority, other.authority
    serials: set[int] = set()
    connections = 0
    is_over = asyncio.Event()

    async def keep_asking() -> int:
        """On one connection, which no change may disturb."""
        count = 0
        async with webhook.client(*both) as client:
            while not is_over.is_set():
                assert (await client.post(review(POD))).is_allowed
                count += 1
        return count

    async def keep_connecting() -> int:
        nonlocal connections
        while not is_over.is_set():
            async with webhook.client(*both) as client:
                assert (await client.post(review(POD))).is_allowed
                serials.add(client.serial())
            connections += 1
        return connections

    async with asyncio.timeout(90), asyncio.TaskGroup() as group:
        tasks = [group.create_task(one()) for one in (keep_asking, keep_connecting)]
        await until(lambda: len(serials) == 1)
        # One file is replaced before the other.
        (webhook.folder / "tls.crt").write_text(other.certificate)
        await until(lambda: "webhook.bad-certificate" in webhook.log())
        before = connections
        await until(lambda: connections > before + 3)
        write_pair(webhook.folder, other)
        await until(lambda: len(serials) > 1)
        is_over.set()

    assert all(task.result() for task in tasks)


@pytest.mark.parametrize("link", [True, False], ids=["as-a-secret", "files"])
async def test_a_mounted_secret_is_followed(
    tmp_path: Path, pair: Pair, *, link: bool
) -> None:
    """A mounted Secret is a folder behind a link that is replaced."""
    folder = tmp_path / "1"
    folder.mkdir()
    write_pair(folder, pair)
    if link:
        (tmp_path / "..data").symlink_to(folder)
        for name in ("tls.crt", "tls.key"):
            (tmp_path / name).symlink_to(f"..data/{name}")
    else:
        write_pair(tmp_path, pair)
    other = new_pair()
    with running_webhook(tmp_path) as webhook:
        if link:
            (tmp_path / "2").mkdir()
            write_pair(tmp_path / "2", other)
            (tmp_path / "..new").symlink_to(tmp_path / "2")
            (tmp_path / "..new").replace(tmp_path / "..data")
        else:
            write_pair(tmp_path, other)
        await until(lambda: webhook.log().count("webhook.certificate ") > 1)
        async with webhook.client(other.authority) as client:
            assert (await client.post(review(POD))).is_allowed


async def test_a_client_with_another_authority_is_not_served(
    webhook: RunningWebhook, pair: Pair
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        async with webhook.client(new_pair().authority):
            pass

    async with webhook.client(pair.authority) as client:
        assert (await client.post(review(POD))).is_allowed
    assert "Traceback" not in webhook.log()


async def test_the_server_waits_for_its_certificate(tmp_path: Path, pair: Pair) -> None:
    with starting_webhook(tmp_path) as webhook:
        await until(lambda: "webhook.bad-certificate" in webhook.log())
        write_pair(tmp_path, pair)
        webhook.wait_until_listening()
        async with webhook.client(pair.authority) as client:
            assert (await client.post(review(POD))).is_allowed


async def test_at_its_end_requests_are_still_answered(
    tmp_path: Path, pair: Pair
) -> None:
    write_pair(tmp_path, pair)
    with running_webhook(tmp_path, "--linger", "2") as webhook:
        async with webhook.client(pair.authority) as client:
            webhook.process.terminate()
            assert (await client.post(review(POD))).is_allowed
            assert await client.reader.read() == b""
        assert webhook.process.wait() == 0


async def test_metrics_and_health_are_served(tmp_path: Path, pair: Pair) -> None:
    write_pair(tmp_path, pair)
    flags = ("--http-endpoint", "127.0.0.1:0", "--annotation", "cri-resource-manager")
    with running_webhook(tmp_path, *flags) as webhook:
        async with webhook.client(pair.authority) as client:
            answer = await client.post(review(POD))
            await client.post(b"{}")
        found = re.search(r"http\.listening .*?endpoint=(\S+)", webhook.log())
        assert found is not None

        def get(path: str) -> str:
            with urlopen(f"http://{found[1]}{path}") as response:
                text: str = response.read().decode()
                return text

        text = await asyncio.to_thread(get, "/metrics")
        assert await asyncio.to_thread(get, "/readyz") == "ok\n"

    patch = json.loads(base64.b64decode(answer.json["response"]["patch"]))
    assert patch[-1]["path"] == "/metadata/annotations/intel.com~1resources"
    samples = {
        (one.name, *one.labels.values()): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }
    reviews = "nri_resmgr_webhook_reviews_total"
    assert samples[reviews, "/mutate", "annotated"] == 1
    assert samples[reviews, "/mutate", "bad"] == 1
    assert samples["nri_resmgr_webhook_review_seconds_count", "/mutate"] == 2
    assert samples["nri_resmgr_webhook_certificate_bad",] == 0
    until = samples["nri_resmgr_webhook_certificate_expiry_timestamp_seconds",]
    assert 29 * 86_400 < until - time.time() < 30 * 86_400


async def test_nothing_of_a_pod_is_in_the_log(
    webhook: RunningWebhook, pair: Pair
) -> None:
    secret = {"name": "s3cr3t-name", "env": [{"name": "TOKEN", "value": "s3cr3t"}]}
    pod = {"metadata": {}, "spec": {"containers": [secret]}}
    async with webhook.client(pair.authority) as client:
        await client.post(review(pod))
        bad = await client.post({**review(pod), "request": {"uid": "s3cr3t"}})
        assert bad.status == 400

    assert "s3cr3t" not in webhook.log()
