"""A fault of ours loses no document: it is offered again."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.app.background.supervisor import Part, Supervisor, Timing
from nri_resmgr.app.plugin.options import PluginOptions
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.documents import Documents
from tests.daemon.documents import MACHINE, document, reserved, write
from tests.waiting import until

pytestmark = pytest.mark.slow  # waits for real timers


class Faulty(ResourcePolicy):
    """Has no memory for the next configuration, once that is set."""

    faults = 0

    def rebuild(self, *args: Any, **options: Any) -> None:
        if self.faults:
            self.faults -= 1
            raise MemoryError
        super().rebuild(*args, **options)


@asynccontextmanager
async def followed(path: Path) -> AsyncIterator[tuple[DaemonConfiguration, Part]]:
    options = argparse.Namespace(
        config_file=str(path),
        fallback_config=None,
        disable_policy_switch=False,
        spool=None,
    )
    made = DaemonConfiguration(
        options,
        Documents(options, None),
        lambda config, document, rules: Faulty(
            MACHINE,
            config,
            plugin_options=PluginOptions(document=document, rules=rules),
        ),
        launched=False,
    )
    assert isinstance(made.policy, Faulty)
    made.policy.faults = 2
    part = Part("configuration", made.follow, "the configuration in force stays")
    supervisor = Supervisor(timing=Timing(first_pause=0.05))
    task = asyncio.create_task(supervisor.run([part]))
    try:
        yield made, part
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_a_changed_file_is_offered_again(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    async with followed(path) as (configuration, part):
        await asyncio.sleep(0.1)
        write(path, document(2))
        await until(lambda: reserved(configuration) == "2")

    assert part.restarts == 2


async def test_a_reload_is_repeated(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    async with followed(path) as (configuration, part):
        await asyncio.sleep(0.1)
        before = configuration.policy.policy
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: configuration.policy.policy is not before)

    assert part.restarts == 2
