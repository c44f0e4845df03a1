"""A part of the webhook that fails is started again, or the webhook ends in order."""

from __future__ import annotations

import asyncio
import errno
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.app.background.supervisor import LONGEST, STEADY
from nri_resmgr.app.metrics.table import PART_FAILING, PART_FAILURES
from nri_resmgr.values.exit_status import FAILED
from nri_resmgr.webhook.own_certificates.plan import Pair
from tests.faults.filtered_process import FilteredProcess, filtered_process
from tests.faults.later_clock import LaterClock
from tests.faults.system_calls import ALWAYS, Fault, Point, why_not_here
from tests.waiting import until
from tests.webhook.rig import NAME, new_pair, running_webhook, write_pair

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not_here()), reason=why_not_here()),
]

# OpenSSL opens the texts that were read: certificate and key to try them, and again for
# the server.
LOADED: Final = Point("openat", "loaded")
FIRST, LAST = 0, 3
PART: Final = "certificate"
WELL: Final = (200, "ok\n")


@asynccontextmanager
async def webhook_with_faults(
    folder: Path, later: LaterClock
) -> AsyncIterator[FilteredProcess]:
    """Run a webhook with the certificate of a folder."""

    def place_of(path: str) -> str:
        return "loaded" if path.startswith("/proc/self/fd/") else "other"

    command = (
        *(sys.executable, "-m", "nri_resmgr", "webhook", "--log-format", "json"),
        *("--endpoint", "127.0.0.1:0", "--http-endpoint", "127.0.0.1:0"),
        *("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key")),
    )
    async with filtered_process(
        command,
        folder / "log",
        place_of,
        calls={LOADED.call},
        environment=later.environment,
    ) as webhook:
        await until(lambda: webhook.said("webhook.listening"))
        await until(lambda: webhook.said("http.listening"))
        yield webhook


async def shows(webhook: FilteredProcess, pair: Pair) -> bool:
    """Return whether a client that trusts the CA of a certificate can connect."""
    (line,) = webhook.said("webhook.listening")
    host, _, port = line["endpoint"].rpartition(":")
    trust = ssl.create_default_context(cadata=pair.authority)
    try:
        _, writer = await asyncio.open_connection(
            host, int(port), ssl=trust, server_hostname=NAME
        )
    except OSError:
        return False
    writer.transport.abort()
    return True


@pytest.mark.parametrize("after", [FIRST, LAST])
async def test_a_certificate_is_put_in_use_after_a_fault_that_passes(
    tmp_path: Path, after: int
) -> None:
    later, pair = LaterClock(tmp_path / "clock"), new_pair()
    write_pair(tmp_path, new_pair())
    async with webhook_with_faults(tmp_path, later) as webhook:
        webhook.calls.arm(Fault(LOADED, errno.EMFILE, after))
        write_pair(tmp_path, pair)
        await until(lambda: webhook.said("part.failed"))
        failing = await webhook.metric(PART_FAILING.name, PART)
        async with asyncio.timeout(30):
            while not await shows(webhook, pair):  # noqa: ASYNC110 - of a process
                await asyncio.sleep(0.1)
        later.jump(STEADY)
        await until(lambda: webhook.said("part.recovered"))
        working = await webhook.metric(PART_FAILING.name, PART)
        failures = await webhook.metric(PART_FAILURES.name, PART)
        failed = webhook.said("part.failed")

    assert failing > 0
    assert (working, failures) == (0, 1)
    assert [(one["part"], one["again_in"]) for one in failed] == [(PART, 1)]
    assert "Too many open files" in failed[0]["why"]


async def test_a_part_that_cannot_come_back_ends_the_webhook_in_order(
    tmp_path: Path,
) -> None:
    later, old, new = LaterClock(tmp_path / "clock"), new_pair(), new_pair()
    write_pair(tmp_path, old)
    async with webhook_with_faults(tmp_path, later) as webhook:
        webhook.calls.arm(Fault(LOADED, errno.EMFILE, times=ALWAYS))
        write_pair(tmp_path, new)
        await until(lambda: webhook.said("part.failed"))
        waiting, serves = await webhook.get("/healthz"), await shows(webhook, old)
        later.jump(LONGEST)
        status = await asyncio.wait_for(webhook.process.wait(), 60)
        (lost,) = webhook.said("part.lost")
        last_words = webhook.last_words()
    (tmp_path / "log").unlink()
    with running_webhook(tmp_path) as next_one:
        async with next_one.client(new.authority):
            pass

    assert (waiting, serves, status) == (WELL, True, FAILED)
    assert lost["why"].startswith(f"{PART} has failed for 3")
    assert last_words == f"nri-resmgr: {lost['why']}"
