"""``python -m tests.benchmarks.admission``: the webhook at 100 reviews a second.

The webhook as a process, and clients over TLS as API servers are: some connections that
stay open, or a new one for each review. Reviews are sent at fixed times, whatever the
answers take, and the latency is measured from then.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import tempfile
from pathlib import Path
from typing import Final

from tests.benchmarks.tables import (
    busy_machine,
    print_cells,
    print_header,
)
from tests.webhook.pods import Json, review
from tests.webhook.rig import (
    RunningWebhook,
    WebhookClient,
    new_pair,
    running_webhook,
    write_pair,
)

RATE: Final = 100
SECONDS: Final = 30.0
CONNECTIONS: Final = 6  # two of each of three API servers
_MS: Final = 1e3
_WARM_UP: Final = 50


def pod(containers: int) -> Json:
    """Return a pod of a usual size."""
    return {
        "metadata": {
            "name": "web",
            "labels": {f"label-{number}": "x" * 30 for number in range(8)},
            "annotations": {f"note-{number}": "y" * 100 for number in range(4)},
        },
        "spec": {
            "containers": [
                {
                    "name": f"c{number}",
                    "image": "registry.example.com/team/app:1.2.3",
                    "env": [
                        {"name": f"VARIABLE_{i}", "value": "z" * 40} for i in range(20)
                    ],
                    "resources": {
                        "requests": {"cpu": "250m", "memory": "512Mi"},
                        "limits": {"cpu": "1", "memory": "1Gi"},
                    },
                }
                for number in range(containers)
            ]
        },
    }


async def measure(
    webhook: RunningWebhook,
    authority: str,
    content: bytes,
    options: argparse.Namespace,
    *,
    stays: bool,
) -> list[float]:
    """Send reviews at fixed times; return the seconds of each."""
    clients: asyncio.Queue[WebhookClient] = asyncio.Queue()
    latencies: list[float] = []
    loop = asyncio.get_running_loop()
    begin = loop.time() + 0.5

    async def post(due: float) -> None:
        await asyncio.sleep(max(0.0, begin + due - loop.time()))
        # From when it was due, so that a late answer is late for those behind it, too.
        if stays:
            client = await clients.get()
            answer = await client.post(content)
            clients.put_nowait(client)
        else:
            async with webhook.client(authority) as client:
                answer = await client.post(content)
        latencies.append(loop.time() - begin - due)
        if not answer.is_allowed:
            raise AssertionError(f"status {answer.status}")

    chances = random.Random(1)  # noqa: S311 - no secret
    count = int(options.rate * options.seconds)
    # As they come to a cluster: at random times.
    times = sorted(chances.uniform(0, options.seconds) for _ in range(count))
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(CONNECTIONS if stays else 0):
            client = await stack.enter_async_context(webhook.client(authority))
            for _ in range(_WARM_UP):
                await client.post(content)
            clients.put_nowait(client)
        begin = loop.time() + 0.5
        async with asyncio.TaskGroup() as group:
            for due in times:
                group.create_task(post(due))
    return latencies


def percentile(figures: list[float], share: float) -> str:
    """Return a percentile in milliseconds."""
    ordered = sorted(figures)
    place = min(len(ordered) - 1, int(share * len(ordered)))
    return f"{ordered[place] * _MS:.2f}"


def resident(pid: int) -> int:
    """Return the resident memory of a process in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) >> 10


async def run(options: argparse.Namespace) -> None:
    """Measure, and print the table."""
    print(f"Machine: {busy_machine()}\n")
    print_header(
        f"{options.rate} reviews a second, {options.seconds:g} s; ms",
        *("p50", "p99", "p99.9", "max", "resident after, MiB"),
    )
    pair = new_pair()
    with tempfile.TemporaryDirectory() as name:
        write_pair(Path(name), pair)
        with running_webhook(Path(name)) as webhook:
            for containers in (1, 10):
                content = json.dumps(review(pod(containers))).encode()
                for stays in (True, False):
                    found = await measure(
                        webhook, pair.authority, content, options, stays=stays
                    )
                    how = f"{CONNECTIONS} connections" if stays else "each a connection"
                    print_cells(
                        f"{containers} containers ({len(content) >> 10} KiB), {how}",
                        *(percentile(found, share) for share in (0.5, 0.99, 0.999, 1)),
                        str(resident(webhook.process.pid)),
                    )


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
