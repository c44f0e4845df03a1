"""The daemon's plugin as a program that reads its configuration again at SIGHUP."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from nri_resmgr.app.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig, parse_config
from nri_resmgr.host.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log.output import LogFormat, configure_logging
from nri_resmgr.stub import Stub, run_until_signal


async def live(socket: str, config: Path) -> None:
    """Serve a runtime by the configuration that the file has at each moment."""
    tree = HostTree("/")
    policy = ResourcePolicy(read_machine(tree), read(config), tree=tree)
    stub = Stub.from_environment(policy, name="balloons", index="90", socket=socket)
    policy.connect(stub)
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGHUP, lambda: policy.reconfigure(read(config))
    )
    await run_until_signal(stub)


def read(config: Path) -> PolicyConfig:
    return parse_config(config.read_text())


if __name__ == "__main__":
    configure_logging("info", LogFormat.JSON)
    asyncio.run(live(sys.argv[1], Path(sys.argv[2])))
