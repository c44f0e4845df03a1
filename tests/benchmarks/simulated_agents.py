"""``python -m tests.benchmarks.simulated_agents``: many agents in one process.

Each is the agent of the product, with a node name, a client, a folder and connections
of its own; its daemon is a `StandInDaemon`. `cluster_load` starts some of these.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from pathlib import Path
from typing import Final

from nri_resmgr.agent.agent import Agent
from nri_resmgr.agent.api import ApiClient, find_access
from nri_resmgr.agent.api.credentials import Access
from nri_resmgr.agent.configuration import ConfigScope, custom_resources
from nri_resmgr.agent.options import AgentOptions
from tests.benchmarks.cluster import KIND, NAMESPACE
from tests.benchmarks.stand_in_daemon import StandInDaemon

BUSY: Final = "busy"
"""A file of the folder: while it exists, containers come and go on all nodes."""

_RAMP: Final = 0.1  # seconds between the starts of two agents


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"node-{number:04}"


def main() -> None:
    """Run agents until a signal ends the process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--numbers", type=int, nargs="+", required=True)
    options = parser.parse_args()
    access = find_access(options.kubeconfig)
    asyncio.run(_run(options.folder, access, options.numbers))


async def _run(folder: Path, access: Access, numbers: list[int]) -> None:
    async with asyncio.TaskGroup() as group:
        for number in numbers:
            group.create_task(_agent(folder, access, node_name(number)))
            await asyncio.sleep(_RAMP)


async def _agent(folder: Path, access: Access, node: str) -> None:
    own = folder / node
    (own / "spool").mkdir(parents=True)
    daemon = StandInDaemon(own / "spool", folder / BUSY)
    socket = own / "control"
    options = AgentOptions(
        scope=ConfigScope(node, NAMESPACE, custom_resources([KIND])),
        spool=own / "spool",
        control_socket=str(socket),
    )
    async with daemon.serving(socket), ApiClient.open(access) as api:
        # A signal ends the process.
        with contextlib.suppress(asyncio.CancelledError):
            await Agent(api, options).run()


if __name__ == "__main__":
    main()
