"""``python -m tests.benchmarks.pods_race``: pods that the Pods API has late.

A thousand pods, twenty at a time, whose containers are created as soon as their
sandboxes exist. The kubelet serves each a fixed time after its sandbox was requested.
The test runtime, the kubelet's double and the plugin are in this process, so figures
include the waiting for each other. `tests/kubelet/test_race.py` checks the amounts.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.policy.events import RequestOrigin
from tests.benchmarks.tables import busy_machine, print_cells, print_header, rounded
from tests.kubelet.node import running_node
from tests.kubelet.race import AT_ONCE, Placements, knows, pods, run_late
from tests.waiting import until

PODS: Final = 1000
LAGS: Final = (0, 50, 200, 500)  # milliseconds
_MACHINE: Final = "2s2n16c2t"
_LONGEST: Final = 600.0  # seconds
_MS: Final = 1e3


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS, help="(%(default)s)")
    options = parser.parse_args()
    configure_logging("error", LogFormat.TEXT)
    print(f"Machine: {busy_machine()}\n", flush=True)
    print_header(
        f"lag of the Pods API, ms ({options.pods} pods)",
        "exact at the creation",
        "by an estimate, then exact",
        *(f"until exact, {which}, ms" for which in ("median", "p99", "longest")),
    )
    for lag in LAGS:
        exact, delays = asyncio.run(_race(options.pods, lag / _MS))
        print_cells(str(lag), str(exact), str(len(delays)), *_figures(delays))


def _figures(delays: Sequence[float]) -> tuple[str, ...]:
    if not delays:
        return ("", "", "")
    ordered = sorted(delays)
    p99 = ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)]
    found = (statistics.median(ordered), p99, ordered[-1])
    return tuple(rounded(one * _MS) for one in found)


async def _race(count: int, lag: float) -> tuple[int, list[float]]:
    """Run pods.

    Returns:
        How many containers were exact when they were created, and for each other one
        the seconds until the decision that corrected it.
    """
    seen = Placements()
    chance = random.Random(20)  # noqa: S311 - repeatable
    with tempfile.TemporaryDirectory(prefix="nri-race-") as folder:
        async with running_node(Path(folder), _MACHINE, observers=(seen,)) as node:
            waiting = pods(count, chance)

            async def live() -> None:
                while waiting:
                    await run_late(node, waiting.pop(), lag)

            await asyncio.gather(*(live() for _ in range(AT_ONCE)))
            await until(partial(knows, node, count), within=_LONGEST)
    exact, delays = 0, []
    for id_, specs in seen.of.items():
        if specs[-1].source is not RequestOrigin.KUBELET:
            raise AssertionError(f"{id_}: {specs[-1].source}")
        if specs[0].source is RequestOrigin.KUBELET:
            exact += 1
        else:
            delays.append(seen.at[id_][-1] - seen.at[id_][0])
    if exact + len(delays) != count:
        raise AssertionError(f"{exact} + {len(delays)} of {count}")
    return exact, delays


if __name__ == "__main__":
    main()
