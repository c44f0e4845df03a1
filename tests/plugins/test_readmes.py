"""The READMEs of the plugins: tables complete, examples real."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime
from plugins.template.__main__ import TemplateSettings
from tests.plugins.programs import PLUGINS, SAMPLES, running

pytestmark = pytest.mark.process


def readme(plugin: str) -> str:
    return (PLUGINS / plugin / "README.md").read_text()


def options(plugin: str) -> set[str]:
    """Return the keys of the table that has the flags, too."""
    _, _, table = readme(plugin).partition("| key | flag |")
    return set(re.findall(r"^\| `(\w+)` \| .*", table, re.MULTILINE))


@pytest.mark.parametrize("plugin", sorted(path.name for path in PLUGINS.iterdir()))
def test_the_table_has_flags_that_exist(plugin: str) -> None:
    shown = subprocess.run(
        [sys.executable, PLUGINS / plugin, "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    flags = set(re.findall(r"^\|.*`(--[a-z-]+)`", readme(plugin), re.MULTILINE))
    known = set(re.findall(r"--[a-z-]+", shown)) - {"--help"}
    assert flags <= known
    assert flags == known or plugin == "resource-policy"  # shows the most used


def test_the_tables_have_the_keys_of_the_documents() -> None:
    for plugin in (
        *(
            "differ",
            "hook-injector",
            "logger",
            "memory-policy",
            "memory-qos",
            "validator",
        ),
        "writable-cgroups",
    ):
        sample = yaml.safe_load((SAMPLES / f"{plugin}.conf").read_text())
        assert options(plugin) == sample.keys()
    assert options("template") == set(TemplateSettings.__struct_fields__)


async def test_the_example_of_the_logger_is_its_output(tmp_path: Path) -> None:
    (block,) = re.findall(
        r"^```yaml\n(.*?)^```$", readme("logger"), re.DOTALL | re.MULTILINE
    )
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--events", "createcontainer")
        async with running(PLUGINS / "logger", *flags) as process:
            await runtime.synchronized("99-logger")
            pod = await runtime.run_pod(Pod(name="web"))
            await runtime.create_container(
                pod.id, Container(name="app", args=("nginx",))
            )
        assert process.stdout is not None
        printed = (await process.stdout.read()).decode()

    assert timeless(block) == timeless(printed)[-2:]


def timeless(text: str) -> list[dict[str, Any]]:
    return [{**entry, "time": ""} for entry in yaml.safe_load_all(text)]
