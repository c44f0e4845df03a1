"""``python -m tests.benchmarks.cluster_idle``: agent and daemon with nothing to do.

An agent with a real API server and a daemon with 100 containers, `default` in force;
beside it a daemon without ``--spool``. Both daemons have all features on, as in `make
bench`. Then both are started in turn.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.stub.service import SETTLING_TIME
from tests.benchmarks.churn import USUAL_CPUS
from tests.benchmarks.cluster import Cluster, cluster
from tests.benchmarks.everything import BUILT_IN, Site, site, under_systemd
from tests.benchmarks.interrupts import orderly_end
from tests.benchmarks.manager import USUAL_NODE
from tests.benchmarks.measure import Command
from tests.benchmarks.plugins import Running, running
from tests.benchmarks.process import cpu_seconds, resident
from tests.benchmarks.tables import (
    HEADER,
    busy_machine,
    print_cells,
    print_header,
    print_row,
    rounded,
)
from tests.real_host.patience import wait_until

IDLE: Final = 150.0  # seconds
STARTS: Final = 15  # of each daemon

_NAME: Final = "node-a"
_SETTLING: Final = 15.0  # seconds; the first verification and the reports are over
_MS: Final = 1e3


@attrs.frozen(eq=False)
class Process:
    """A process that is measured.

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

    def print(self, aims: tuple[str, str]) -> None:
        """Print its rows."""
        share = (cpu_seconds(self.pid) - self.used) / (time.monotonic() - self.begun)
        print_cells(f"{self.name}: idle, % of a CPU", rounded(100 * share), aims[0])
        print_cells(f"{self.name}: resident, MiB", rounded(resident(self.pid)), aims[1])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--idle", type=float, default=IDLE, help="seconds (%(default)s)"
    )
    parser.add_argument("--starts", type=int, default=STARTS, help="(%(default)s)")
    options = parser.parse_args()
    print(f"Machine: {busy_machine()}\n", flush=True)
    with (
        orderly_end(),
        tempfile.TemporaryDirectory(prefix="nri-idle-") as name,
        site(USUAL_CPUS, BUILT_IN) as without,
        site(USUAL_CPUS) as beside,
    ):
        folder = Path(name)
        daemon = _installed(folder)
        spool = folder / "spool"
        commands = {
            "daemon with a file": without.everything(daemon),
            "daemon with `--spool`": beside.everything(daemon, "--spool", spool),
        }
        spool.mkdir()
        _print_idle(folder, daemon, (without, beside), commands, options.idle)
        print()
        _print_starts(commands, options.starts)


def _print_idle(
    folder: Path,
    daemon: Path,
    sites: tuple[Site, Site],
    commands: dict[str, Command],
    seconds: float,
) -> None:
    with cluster() as where, ExitStack() as stack:
        where.make_node(_NAME)
        file = folder / "default.yaml"
        file.write_text(BUILT_IN)
        where.apply(file)
        plugins = [
            _synchronized(stack, here, daemon, command)
            for here, command in zip(sites, commands.values(), strict=True)
        ]
        agent = stack.enter_context(_agent(where, folder, sites[1]))
        wait_until(lambda: _is_ready(where), "the node to be ready", 120.0)
        time.sleep(_SETTLING)
        processes = [
            Process.now(name, plugin.pid)
            for name, plugin in zip(commands, plugins, strict=True)
        ]
        processes.append(Process.now("agent", agent))
        time.sleep(seconds)
        print_header(f"over {seconds:.0f} s, {USUAL_NODE} containers", "", "aim")
        aims = {"agent": ("≤ 0.1", "≤ 60")}
        for process in processes:
            process.print(aims.get(process.name, ("≤ 0.1", "≤ 45")))


def _print_starts(commands: dict[str, Command], starts: int) -> None:
    """Start the daemons in turn, so that other load affects both."""
    registered: dict[str, list[float]] = {name: [] for name in commands}
    configured: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(-1, starts):  # a first one warms caches
        for name, command in commands.items():
            with running(command) as plugin:
                if number >= 0:
                    registered[name].append(_MS * plugin.start)
                    configured[name].append(_MS * plugin.configured)
                time.sleep(SETTLING_TIME)
    print(HEADER)
    for name in commands:
        print_row(f"{name}: start to registered, ms", registered[name])
    for name in commands:
        print_row(f"{name}: start to configured, ms", configured[name])


def _synchronized(
    stack: ExitStack, here: Site, daemon: Path, command: Command
) -> Running:
    """Start a daemon beside containers that are as decided."""
    request = here.live(daemon, USUAL_NODE)
    plugin = stack.enter_context(under_systemd(command))
    plugin.peer.call("Synchronize", request)
    return plugin


def _is_ready(where: Cluster) -> bool:
    conditions = where.node_statuses().get(_NAME, {}).get("conditions", ())
    found = {one["type"]: one["status"] for one in conditions}
    return found.get("Ready") == "True"


@contextmanager
def _agent(where: Cluster, folder: Path, here: Site) -> Iterator[int]:
    """Run an agent; yield the id of its process."""
    kubeconfig = where.account.kubeconfig(folder / "agent.yaml")
    with (folder / "agent.log").open("wb") as log:
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
        yield process.pid
        assert process.poll() is None, (folder / "agent.log").read_text()
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
