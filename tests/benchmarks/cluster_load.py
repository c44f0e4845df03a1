"""``python -m tests.benchmarks.cluster_load``: what many agents ask of an API server.

The agents are the product's own, many in a process, each with the name of a node of its
own; see `simulated_agents`. They are started, left alone, have the object `default`
changed for all of them, get an adjustment for all, report containers that come and go,
and lose the API server for a while. Requests are those of the API server's audit log.
The agents take CPUs of the same machine.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nri_resmgr.spool import CONFIGURATION
from tests.benchmarks.cluster import Cluster, cluster, document
from tests.benchmarks.cluster_adjustments import AdjustmentForAll
from tests.benchmarks.cluster_phases import PHASE_HEADER, Phase, print_verbs
from tests.benchmarks.interrupts import orderly_end
from tests.benchmarks.simulated_agents import BUSY, node_name
from tests.benchmarks.tables import busy_machine, print_cells, print_header
from tests.real_host.patience import wait_until

AGENTS: Final = 300
PROCESSES: Final = 4
STEADY: Final = 50.0  # seconds
CHANGE: Final = 30.0
CHURN: Final = 45.0
OUTAGE: Final = 15.0
BACK: Final = 45.0

WATCHES: Final = 4
"""Of a node: itself, its own object and the shared one of one kind, adjustments."""

_COUNTED: Final = 3  # of these, which the API server counts

_SETTLING: Final = 15.0  # seconds, in which the last entries are written
_PATIENCE: Final = 240.0  # seconds for all agents to have reported
_FILE: Final = "default.json"
# If the benchmark is killed, so are they (setpriv(1)).
_DIE_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL")


class Run:
    """The phases, one after the other.

    Args:
        where: The cluster.
        folder: Of the agents.
        agents: Their number.
    """

    def __init__(self, where: Cluster, folder: Path, agents: int) -> None:
        self._where = where
        self._folder = folder
        self._names = [node_name(number) for number in range(agents)]
        self._generation = 0
        self.phases: list[Phase] = []
        self.notes: list[str] = []

    def prepare(self) -> None:
        """Make the Nodes, and the first configuration."""
        for name in self._names:
            self._where.make_node(name)
        self._apply("0-3")

    def start(self) -> None:
        """Wait until all agents have reported, and all watch."""
        self._until_reported()
        count = _COUNTED * len(self._names)

        def enough() -> bool:
            return self._where.open_watches() >= count

        wait_until(enough, f"{count} watches to be open", _PATIENCE)

    def change(self, seconds: float) -> None:
        """Change the object that all share, and see all of them follow."""
        begin = time.time()
        self._apply("0-5")
        time.sleep(seconds)
        self._until_reported()
        times = [path.stat().st_mtime - begin for path in self._documents()]
        self.notes.append(
            "The changed document was in the folder of an agent "
            f"{statistics.median(times):.1f} s after `kubectl apply` had begun at the "
            f"median, and {max(times):.1f} s at most."
        )

    def churn(self, seconds: float) -> None:
        """Have containers come and go on all nodes."""
        (self._folder / BUSY).touch()
        time.sleep(seconds)
        (self._folder / BUSY).unlink()

    def returned(self, seconds: float) -> None:
        """Let the agents come back to the API server."""
        time.sleep(seconds)
        count = self._where.open_watches()
        wanted = _COUNTED * len(self._names)
        self.notes.append(
            f"At the end {count} of {wanted} watches of objects were open again."
        )

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what is done meanwhile."""
        begin, log = time.monotonic(), self._where.log_size()
        before = self._where.usage()
        yield
        seconds = time.monotonic() - begin
        after, arrivals = self._where.usage(), tuple(self._where.arrivals(log))
        self.phases.append(Phase(name, seconds, arrivals, before, after))
        print_cells(*self.phases[-1].cells())

    def _apply(self, cpus: str) -> None:
        file = self._folder / _FILE
        file.write_text(document(cpus))
        self._where.apply(file)
        self._generation += 1

    def _until_reported(self) -> None:
        def all_have() -> bool:
            time.sleep(1.0)  # a list of all is a load, too
            statuses = self._where.node_statuses()
            found = [one.get("observed", {}) for one in statuses.values()]
            done = [one for one in found if one.get("generation") == self._generation]
            return len(done) == len(self._names)

        wait_until(all_have, "all agents to have reported", _PATIENCE)

    def _documents(self) -> Iterator[Path]:
        for name in self._names:
            yield self._folder / name / "spool" / CONFIGURATION


def main() -> None:
    """Print the tables."""
    options = _options()
    print(f"Machine: {busy_machine()}\n", flush=True)
    with (
        orderly_end(),
        cluster() as where,
        tempfile.TemporaryDirectory(prefix="nri-agents-") as name,
    ):
        folder = Path(name)
        kubeconfig = where.account.kubeconfig(folder / "agent.yaml")
        run = Run(where, folder, options.agents)
        run.prepare()
        resident = where.usage().resident
        print_header(*PHASE_HEADER)
        adjustment = AdjustmentForAll(where, folder, options.agents)
        with _agents(folder, kubeconfig, options.agents):
            _take(run, where, adjustment, options)
    opened = WATCHES * options.agents
    start = run.phases[0].after.resident
    each = 1024 * (start - resident) / opened
    print(
        f"\nBefore the agents the API server had {resident:.0f} MiB, and {each:.0f} "
        f"KiB more for each of {opened} watches. {' '.join(run.notes)}\n"
    )
    print_verbs(run.phases)
    print()
    adjustment.print_times()


def _take(
    run: Run,
    where: Cluster,
    adjustment: AdjustmentForAll,
    options: argparse.Namespace,
) -> None:
    with run.phase("start of all"):
        run.start()
    time.sleep(_SETTLING)
    with run.phase("nothing changes"):
        time.sleep(options.steady)
    with run.phase("`default` is changed"):
        run.change(options.change)
    for name, make in adjustment.phases().items():
        with run.phase(name):
            make()
    with run.phase("containers come and go on all nodes"):
        run.churn(options.churn)
    where.control_plane.kill()
    time.sleep(options.outage)
    where.control_plane.start()
    with run.phase(f"after an outage of {options.outage:.0f} s and a start"):
        run.returned(options.back)


@contextmanager
def _agents(folder: Path, kubeconfig: Path, count: int) -> Iterator[None]:
    """Run agents in some processes."""
    command = (sys.executable, "-m", "tests.benchmarks.simulated_agents")
    processes = []
    try:
        for first in range(min(PROCESSES, count)):
            numbers = [str(number) for number in range(first, count, PROCESSES)]
            places = ("--folder", folder, "--kubeconfig", kubeconfig)
            with (folder / f"agents-{first}.log").open("wb") as log:
                started = subprocess.Popen(
                    [*_DIE_WITH_US, *command, *places, "--numbers", *numbers],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            processes.append(started)
        yield
        ended = [one.args for one in processes if one.poll() is not None]
        assert not ended, f"agents ended: {ended}"
    finally:
        for one in processes:
            one.kill()
        for one in processes:
            one.wait()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=AGENTS, help="(%(default)s)")
    for name, seconds, what in (
        ("steady", STEADY, "without a change"),
        ("change", CHANGE, "after a change for all"),
        ("churn", CHURN, "of containers that come and go"),
        ("outage", OUTAGE, "without API server"),
        ("back", BACK, "after its start"),
    ):
        text = f"seconds {what} (%(default)s)"
        parser.add_argument(f"--{name}", type=float, default=seconds, help=text)
    return parser.parse_args()


if __name__ == "__main__":
    main()
