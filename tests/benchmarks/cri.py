"""``python -m tests.benchmarks.cri``: calls of a kubelet, with and without plugin.

One containerd has so many running containers that share CPUs. In each turn the plugin
is started in one mode after the other, and once not at all. Each time a Guaranteed one
with an exclusive CPU, and then a Burstable one, are created, started, stopped, removed.
So what slows the machine down for a while affects all modes.

All modes have the same containerd because of the kernel: with cgroups of version 1 a
write of CPUs takes the longer the more cpusets the whole machine has.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from tests.benchmarks.awake import awake_cpus
from tests.benchmarks.interrupts import orderly_end
from tests.benchmarks.modes import NO_PLUGIN, PLUGIN_MODES, Mode
from tests.real_host.binaries import SEARCH_PATH, Binaries, binaries, offered_versions
from tests.real_host.containerd import Containerd
from tests.real_host.containerd_config import Options
from tests.real_host.debian import PackageUnavailable
from tests.real_host.patience import wait_until
from tests.real_host.plugin_process import PluginProcess
from tests.real_host.pods import Container, ContainerSpec, PodSpec
from tests.real_host.resources import MIB, Resources

SHARED: Final = (0, 20, 100)  # running containers
TURNS: Final = 10
REPETITIONS: Final = 3  # of each turn
WARM_UP: Final = 1  # repetition of each turn, as the plugin has just started

MODES: Final = (NO_PLUGIN, *PLUGIN_MODES)
CALLS: Final = ("CreateContainer", "StartContainer", "StopContainer")

_EXCLUSIVE: Final = "Guaranteed, 1 exclusive CPU"
_KINDS: Final = {
    _EXCLUSIVE: Resources.guaranteed(1),
    "Burstable, 100m": Resources.burstable(0.1, memory=64 * MIB),
}
_MS: Final = 1e3
# Not those of this process: in an emulated machine all but the containers has one CPU.
_ALL: Final = frozenset(read_machine(HostTree("/")).online)

Times = tuple[float, float, float]  # milliseconds of CALLS


class Node:
    """A containerd, and its containers.

    Args:
        daemon: A running one.
    """

    def __init__(self, daemon: Containerd) -> None:
        self.daemon = daemon
        self._shared: list[int] = []
        self._pods = {
            kind: daemon.run_pod(PodSpec(f"measured-{number}", qos=resources.qos))
            for number, (kind, resources) in enumerate(_KINDS.items())
        }

    def grow(self, containers: int) -> None:
        """Start containers, each in a pod of its own, until so many share CPUs."""
        resources = Resources.best_effort()
        for number in range(len(self._shared), containers):
            pod = self.daemon.run_pod(PodSpec(f"shared-{number}", qos=resources.qos))
            self._shared.append(_first_process(pod.start("shared", resources)))

    def measure(self, mode: Mode, kind: str) -> Times:
        """Create, start, stop and remove a container."""
        pod, spec = self._pods[kind], ContainerSpec("measured", _KINDS[kind])
        self._until_all_share_all()
        begin = time.perf_counter()
        container = pod.create(spec)
        created = time.perf_counter()
        container.start()
        started = time.perf_counter()
        if mode.flags is not None and kind == _EXCLUSIVE:
            self._check_alone(container)
        stopping = time.perf_counter()
        container.stop()
        stopped = time.perf_counter()
        container.remove()
        self._until_all_share_all()
        return (
            _MS * (created - begin),
            _MS * (started - created),
            _MS * (stopped - stopping),
        )

    def _check_alone(self, container: Container) -> None:
        """Check that the kernel keeps others off its CPU, or figures mean nothing.

        Source:
            sched_setaffinity(2): what is read are the CPUs that the cpuset leaves.
        """
        own = os.sched_getaffinity(_first_process(container))
        assert len(own) == 1, f"CPUs {own} are not one CPU"
        beside = [pid for pid in self._shared if own & os.sched_getaffinity(pid)]
        assert not beside, f"{len(beside)} other containers may use CPUs {own}"

    def _until_all_share_all(self) -> None:
        """Wait for what the plugin does after its reply."""
        wait_until(
            lambda: all(os.sched_getaffinity(pid) == _ALL for pid in self._shared),
            "shared containers to have all CPUs",
        )


def main() -> None:
    """Print a table per release, row by row as they are measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--shared",
        type=int,
        nargs="+",
        default=SHARED,
        help="numbers of running containers that share CPUs, ascending",
    )
    parser.add_argument("--turns", type=int, default=TURNS, help="(%(default)s)")
    options = parser.parse_args()
    with orderly_end(), awake_cpus():
        print(f"Machine: {_machine()}")
        for version in offered_versions():
            try:
                programs = binaries(version)
            except PackageUnavailable as reason:
                print(f"\ncontainerd ({version}) is left out: {reason}")
                continue
            _measure_release(programs, sorted(options.shared), options.turns)


def _measure_release(programs: Binaries, amounts: Sequence[int], turns: int) -> None:
    with (
        # Short: sockets lie in it.
        tempfile.TemporaryDirectory(prefix="nri-cri-") as name,
        ExitStack() as stack,
    ):
        daemon = Containerd(programs, Path(name, "cd"))
        stack.callback(daemon.close)
        daemon.start()
        print(f"\n{daemon.cri.version()}\n\n{_header()}", flush=True)
        node = Node(daemon)
        for amount in amounts:
            node.grow(amount)
            for row in _rows(amount, _take_turns(node, turns)):
                print(row, flush=True)


def _take_turns(node: Node, turns: int) -> Mapping[tuple[Mode, str], list[Times]]:
    """Measure all modes in turn, each time another one first."""
    found: dict[tuple[Mode, str], list[Times]] = {}
    for turn in range(turns):
        first = turn % len(MODES)
        for mode in (*MODES[first:], *MODES[:first]):
            with _plugged_in(node.daemon, mode):
                for repetition in range(-WARM_UP, REPETITIONS):
                    for kind in _KINDS:
                        times = node.measure(mode, kind)
                        if repetition >= 0:
                            found.setdefault((mode, kind), []).append(times)
    return found


def _header() -> str:
    cells = ["container", "call", "shared", f"{NO_PLUGIN.name}, ms"]
    for mode in PLUGIN_MODES:
        cells += [f"{mode.name}, ms", "times no plugin"]
    return f"| {' | '.join(cells)} |\n{'|---' * len(cells)}|"


def _rows(
    amount: int, times: Mapping[tuple[Mode, str], Sequence[Times]]
) -> Iterator[str]:
    for kind in _KINDS:
        for place, call in enumerate(CALLS):
            figures = {
                mode: [one[place] for one in times[mode, kind]] for mode in MODES
            }
            base = _typical(figures[NO_PLUGIN])
            cells = [kind, call, str(amount), _cell(base, ".0f")]
            for mode in PLUGIN_MODES:
                found = _typical(figures[mode])
                ratios = found[0] / base[0], found[1] / base[1]
                cells += [_cell(found, ".0f"), _cell(ratios, ".2f")]
            yield f"| {' | '.join(cells)} |"


def _typical(figures: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 90th percentile."""
    tenths = statistics.quantiles(figures, n=10, method="inclusive")
    return statistics.median(figures), tenths[-1]


def _cell(typical: tuple[float, float], form: str) -> str:
    return " / ".join(format(one, form) for one in typical)


@contextmanager
def _plugged_in(daemon: Containerd, mode: Mode) -> Iterator[None]:
    """Run the daemon of this tree in a mode, with files of its own, or none."""
    if mode.flags is None:
        yield
        return
    with (
        tempfile.TemporaryDirectory(prefix="nri-plugin-") as name,
        ExitStack() as stack,
    ):
        folder = Path(name)
        own = (
            *("--state-dir", str(folder / "state")),
            *("--run-dir", str(folder / "run")),
            *("--control-socket", str(folder / "control")),
        )
        socket, log = daemon.layout.nri_socket, folder / "log"
        plugin = PluginProcess.resource_policy(
            socket, log, *own, *mode.flags, document=mode.document
        )
        stack.callback(plugin.kill)  # also where its start is interrupted
        plugin.start()
        yield


def _first_process(container: Container) -> int:
    for folder in container.cgroup.folders():
        for pid in (folder / "cgroup.procs").read_text().split():
            return int(pid)
    raise AssertionError(f"{container.name} has no process")


def _machine() -> str:
    oci_runtime = subprocess.run(
        (Options().oci_runtime, "--version"),
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": SEARCH_PATH},
    )
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    return (
        f"{os.cpu_count()} CPUs, Linux {platform.release()}, "
        f"cgroup v{2 if unified else 1}, {oci_runtime.stdout.splitlines()[0]}, "
        f"Python {platform.python_version()}, load average {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
