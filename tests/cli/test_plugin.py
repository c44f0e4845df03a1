"""``nri-resmgr plugin``: the process becomes the plugin, with the flags it gets."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime
from tests.cli.command import ROOT, nri_resmgr

pytestmark = pytest.mark.process

# As a shipped one: the flags of `serve`.
HELLO = """
from nri_resmgr.stub import ContainerAdjustment, serve

class Hello:
    def create_container(self, pod, container):
        return ContainerAdjustment().set_env("HELLO", pod.name)

serve(Hello(), index="20")
"""


async def env_with(runtime: Runtime, identity: str, *words: str) -> tuple[str, ...]:
    """Run a plugin until SIGTERM; return the environment of a new container."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nri_resmgr", "plugin", *words),
        *("--socket", str(runtime.socket_path)),
        env={"PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        await runtime.synchronized(identity)
        pod = await runtime.run_pod(Pod(name="web", namespace="shop"))
        created = await runtime.create_container(pod.id, Container(name="app"))
    finally:
        process.terminate()
        status = await process.wait()

    # A plugin ends well by SIGTERM; the command alone would end by it.
    assert status == 0
    return created.container.env


async def test_a_shipped_plugin_serves_under_its_name(tmp_path: Path) -> None:
    async with Runtime(tmp_path) as runtime:
        env = await env_with(runtime, "10-template", "template")

    assert env == ("GREETING=hello shop/web",)


async def test_it_has_the_flags_that_follow(tmp_path: Path) -> None:
    config = tmp_path / "my.conf"
    config.write_text("greeting: ahoy")
    async with Runtime(tmp_path) as runtime:
        words = ("template", "--config", str(config), "--index", "42")
        env = await env_with(runtime, "42-template", *words)

    assert env == ("GREETING=ahoy shop/web",)


async def test_a_program_of_ones_own_serves_too(tmp_path: Path) -> None:
    program = tmp_path / "hello.py"
    program.write_text(HELLO)
    async with Runtime(tmp_path) as runtime:
        env = await env_with(runtime, "20-hello", str(program))

    assert env == ("HELLO=web",)


def test_help_after_the_name_is_the_plugins() -> None:
    own = subprocess.run(
        (sys.executable, ROOT / "plugins" / "logger", "--help"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert nri_resmgr("plugin", "logger", "--help").stdout == own.stdout
    assert "nri-resmgr plugin logger" in nri_resmgr("plugin", "--help").stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(["nonesuch"], "no plugin 'nonesuch': give the path", id="unknown"),
        pytest.param([], "the following arguments are required: plugin", id="no name"),
        pytest.param(["template", "--nonesuch"], "--nonesuch", id="a plugin's flag"),
    ],
)
def test_bad_input_is_a_sentence(words: list[str], sentence: str) -> None:
    done = nri_resmgr("plugin", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert sentence in done.stderr
