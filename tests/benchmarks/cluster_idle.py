"""``python -m tests.benchmarks.cluster_idle``: a daemon with an agent, and without one.

Both cases in turn, so that other load affects both: a daemon with the document in a
file, and one with ``--spool`` beside an agent with a real API server, which has the
same document as the object `default`. The daemons have all features on, as in `make
bench`, and start among containers that are as decided.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.control.client import Client
from tests.benchmarks.churn import USUAL_CPUS
from tests.benchmarks.cluster import Cluster, cluster
from tests.benchmarks.everything import BUILT_IN, Site, site, under_systemd
from tests.benchmarks.interrupts import orderly_end
from tests.benchmarks.manager import USUAL_NODE
from tests.benchmarks.measure import Command
from tests.benchmarks.process import cpu_seconds, resident
from tests.benchmarks.tables import HEADER, busy_machine, print_row
from tests.real_host.patience import wait_until

IDLE: Final = 60.0  # seconds of each round
ROUNDS: Final = 7  # of each case

_NAME: Final = "node-a"
_STARTING: Final = 10.0  # seconds that count as the start, after Synchronize
_SETTLING: Final = 15.0  # seconds; the first verification and the reports are over
_PATIENCE: Final = 120.0  # seconds
_MS: Final = 1e3
_AIMS: Final = {
    "daemon: idle, % of a CPU": "≤ 0.1",
    "daemon: resident, MiB": "≤ 45",
    "agent: idle, % of a CPU": "≤ 0.1",
    "agent: resident, MiB": "≤ 60",
}


@attrs.frozen(eq=False)
class Process:
    """A process that is measured while it is idle.

    Attributes:
        name: What it is.
        pid: Its id.
        used: Seconds of a CPU at the begin.
        begun: When that was read, on the monotonic clock.
    """

    name: str
    pid: int
    used: float
    begun: float

    @classmethod
    def now(cls, name: str, pid: int) -> Process:
        """Begin to measure a process."""
        return cls(name, pid, cpu_seconds(pid), time.monotonic())

    def figures(self) -> Mapping[str, float]:
        """Return the figures since then by the names of their rows."""
        share = (cpu_seconds(self.pid) - self.used) / (time.monotonic() - self.begun)
        return {
            f"{self.name}: idle, % of a CPU": 100 * share,
            f"{self.name}: resident, MiB": resident(self.pid),
        }


@attrs.frozen(eq=False)
class Case:
    """A daemon that is started again and again.

    Attributes:
        name: What it is.
        here: Its paths.
        command: How it is started.
        request: A Synchronize of the node's containers.
        agent: The folder and the cluster of the agent beside it; None without one.
    """

    name: str
    here: Site
    command: Command
    request: bytes
    agent: tuple[Path, Cluster] | None = None

    def measured(self, idle: float) -> Mapping[str, float]:
        """Start it, leave it alone, and return all figures by the names of their rows.

        Args:
            idle: Seconds for which it is left alone.
        """
        with ExitStack() as stack:
            agent = stack.enter_context(self._agent())
            plugin = stack.enter_context(under_systemd(self.command))
            plugin.peer.call("Synchronize", self.request)
            time.sleep(_STARTING)
            figures = {
                "daemon: start to registered, ms": _MS * plugin.start,
                "daemon: start to configured, ms": _MS * plugin.configured,
                "daemon: start, CPU seconds": cpu_seconds(plugin.pid),
            }
            if agent:
                wait_until(self._is_reported, "the agent's report", _PATIENCE)
            time.sleep(_SETTLING)
            processes = [Process.now("daemon", plugin.pid)]
            if agent:
                processes.append(Process.now("agent", agent))
            time.sleep(idle)
            for one in processes:
                figures |= one.figures()
            return figures

    def _agent(self) -> AbstractContextManager[int]:
        """Run the agent, if there is one; return the id of its process, or 0."""
        if self.agent is None:
            return nullcontext(0)
        folder, where = self.agent
        return _agent(where, folder, self.here)

    def _is_reported(self) -> bool:
        """Return whether the daemon knows the agent, and has its document in force."""
        found = Client(str(self.here.folder / "control")).get("/v1/cluster")
        judged = found["configuration"] or {}
        return bool(found["agent"]) and judged.get("verdict") == "accepted"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--idle", type=float, default=IDLE, help="seconds of each round (%(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="of each case (%(default)s)"
    )
    options = parser.parse_args()
    print(f"Machine: {busy_machine()}\n", flush=True)
    with (
        orderly_end(),
        tempfile.TemporaryDirectory(prefix="nri-idle-") as name,
        site(USUAL_CPUS, BUILT_IN) as without,
        site(USUAL_CPUS) as beside,
        cluster() as where,
    ):
        folder = Path(name)
        daemon, spool = _installed(folder), folder / "spool"
        spool.mkdir()
        where.make_node(_NAME)
        file = folder / "default.yaml"
        file.write_text(BUILT_IN)
        where.apply(file)
        cases = (
            Case(
                "without an agent",
                without,
                without.everything(daemon),
                without.live(daemon, USUAL_NODE),
            ),
            Case(
                "with an agent",
                beside,
                beside.everything(daemon, "--spool", spool),
                beside.live(daemon, USUAL_NODE),
                (folder, where),
            ),
        )
        _print(_taken(cases, options.rounds, options.idle))


def _taken(
    cases: tuple[Case, ...], rounds: int, idle: float
) -> Mapping[str, list[float]]:
    """Measure the cases in turn; return the figures by the names of their rows."""
    found: dict[str, list[float]] = {}
    for case in cases:
        case.measured(0.0)  # caches are warm then, and the agent's document is there
    for number in range(rounds):
        # Each case is the first one half of the times.
        for case in cases if number % 2 else reversed(cases):
            for row, figure in case.measured(idle).items():
                title = row if row.startswith("agent") else f"{row}; {case.name}"
                found.setdefault(title, []).append(figure)
    return found


def _print(found: Mapping[str, list[float]]) -> None:
    print(HEADER)
    for title in sorted(found, key=_order):
        print_row(title, found[title], _AIMS.get(title.partition(";")[0], ""))


def _order(title: str) -> tuple[bool, str]:
    """Return the key by which rows are sorted: cases below each other."""
    return title.startswith("agent"), title


@contextmanager
def _agent(where: Cluster, folder: Path, here: Site) -> Iterator[int]:
    """Run an agent; yield the id of its process once it watches."""
    kubeconfig = where.account.kubeconfig(folder / "agent.yaml")
    path = folder / "agent.log"
    with path.open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "nri_resmgr", "agent"),
                *("--node-name", _NAME, "--kubeconfig", kubeconfig),
                *("--spool", folder / "spool"),
                *("--control-socket", here.folder / "control"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        wait_until(lambda: "agent.started" in path.read_text(), "the agent", _PATIENCE)
        time.sleep(_SETTLING)
        yield process.pid
        assert process.poll() is None, path.read_text()
    finally:
        process.kill()
        process.wait()


def _installed(folder: Path) -> Path:
    """Write the launcher of the daemon, as ``nri-resmgr install`` does."""
    program = Path(sys.executable).with_name("nri-resmgr")
    places = ("--plugin-dir", folder / "plugins", "--config-dir", folder / "conf.d")
    subprocess.run([program, "install", *places], check=True, stdout=sys.stderr)
    return folder / "plugins" / "90-resource-policy"


if __name__ == "__main__":
    main()
