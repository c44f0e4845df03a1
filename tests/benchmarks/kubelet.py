"""``python -m tests.benchmarks.kubelet``: memory of a daemon with the kubelet.

A daemon with all features on and 500 containers, without and with the kubelet's two
sockets, by which it knows all requests, and the devices of some containers. The pods of
the Pods API are as large as usual ones.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.kubelet._gen import core_pb2 as core
from nri_resmgr.kubelet.sockets import POD_RESOURCES, PODS_API
from nri_resmgr.stub.service import SETTLING_TIME
from nri_resmgr.testing.kubelet.pod_resources import (
    FakeDevice,
    FakePod,
    FakePodResources,
)
from nri_resmgr.testing.kubelet.pods import PodsService, container, pod
from nri_resmgr.testing.kubelet.server import KubeletServer
from tests.benchmarks.churn import USUAL_CPUS
from tests.benchmarks.everything import Site, site
from tests.benchmarks.interrupts import orderly_end
from tests.benchmarks.manager import FULL_NODE
from tests.benchmarks.plugins import Programs, running
from tests.benchmarks.tables import HEADER, busy_machine, print_row
from tests.benchmarks.workload import amounts_of, pod_of
from tests.real_host.patience import wait_until

ROUNDS: Final = 3  # processes
_TURNOVER: Final = 220  # containers
_WITH_DEVICES: Final = 10  # one in so many has one

_SOURCE: Final = Path(__file__).parents[2]
_KNOWN: Final = 'nri_resmgr_request_source_containers{source="kubelet"}'

# Environment, volumes, probes and the like, in a field that is not read.
_OTHERS: Final = b"\xa2\x06\xf0\x2e" + bytes(6000)


@attrs.frozen
class Sizes:
    """MiB resident.

    Attributes:
        at_first: With all containers.
        later: After some have come and gone.
    """

    at_first: float
    later: float


def main() -> None:
    """Print the table, or serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", metavar="FOLDER", help="be the kubelet")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="(%(default)s)")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve(Path(options.serve)))
        return
    print(f"Machine: {busy_machine()}\n\n{HEADER}", flush=True)
    with (
        orderly_end(),
        tempfile.TemporaryDirectory(prefix="nri-kubelet-") as folder,
        _kubelet(Path(folder)) as served,
    ):
        programs = Programs.install(Path(folder), _SOURCE, "[kubelet]")
        for what, kubelet in (("no socket", "none"), ("both sockets", served)):
            sizes = [_sizes(programs.daemon, kubelet) for _ in range(options.rounds)]
            begin = f"{FULL_NODE} containers, {what}: resident"
            aim = "≤ 46" if kubelet is served else ""
            print_row(f"{begin}, MiB", [one.at_first for one in sizes], aim)
            later = f"{begin} when {_TURNOVER} came and went, MiB"
            print_row(later, [one.later for one in sizes], aim)


def _sizes(daemon: str | Path, kubelet: str | Path) -> Sizes:
    with site(USUAL_CPUS) as where:
        # The peer takes replies only.
        flags = ("--unsolicited-updates", "never", "--kubelet-dir", kubelet)
        command = where.everything(daemon, *flags)
        with running(command) as plugin:
            plugin.peer.call("Synchronize", where.here.snapshot(FULL_NODE))
            _await_known(where, 0 if kubelet == "none" else FULL_NODE)
            time.sleep(SETTLING_TIME + 0.5)
            first = plugin.resident
            where.here.turn_over(FULL_NODE, plugin.peer)
            time.sleep(SETTLING_TIME + 0.5)
            return Sizes(first, plugin.resident)


def _await_known(where: Site, count: int) -> None:
    # At least once: metrics are read in both cases.
    wait_until(lambda: where.metrics().get(_KNOWN, 0) == count, "exact requests")


@contextmanager
def _kubelet(folder: Path) -> Iterator[Path]:
    command = (sys.executable, "-m", "tests.benchmarks.kubelet", "--serve", folder)
    process = subprocess.Popen(command)
    try:
        wait_until((folder / PODS_API.socket).exists, "the kubelet's socket")
        yield folder
    finally:
        process.kill()
        process.wait()


async def _serve(folder: Path) -> None:
    service, devices = _LargePods(), FakePodResources()
    for number in range(FULL_NODE + _TURNOVER):
        asked = amounts_of(number)
        requests = {"cpu": f"{asked.cpu}m", "memory": f"{asked.memory}Mi"}
        limits = {"cpu": f"{asked.cpu_limit}m", "memory": f"{asked.memory_limit}Mi"}
        sandbox = pod_of(number)
        one = container(f"container-{number}", _some(requests), _some(limits))
        service.put(
            pod(sandbox.uid, one, name=sandbox.name, namespace=sandbox.namespace)
        )
        if number % _WITH_DEVICES == 0:
            found = FakeDevice("vendor.com/gpu", (f"gpu-{number}",), (number % 2,))
            containers = {one.name: (found,)}
            devices.put(FakePod(sandbox.namespace, sandbox.name, containers))
    async with (
        KubeletServer(folder / PODS_API.socket, service),
        KubeletServer(folder / POD_RESOURCES.socket, devices),
    ):
        await asyncio.Event().wait()


class _LargePods(PodsService):
    def encoded(self, one: core.Pod) -> bytes:
        return super().encoded(one) + _OTHERS


def _some(amounts: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in amounts.items() if text not in ("0m", "0Mi")}


if __name__ == "__main__":
    main()
