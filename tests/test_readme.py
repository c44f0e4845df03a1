"""What the README shows is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nri_resmgr.config import TopologyAwareConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import Container, Pod
from nri_resmgr.testing import Runtime, RuntimeOptions

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


async def test_the_plugin_works_when_a_runtime_launches_it(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    program = folder / "10-hello"
    [text] = blocks("python")
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)
    options = RuntimeOptions(plugin_folder=folder, registration_timeout=20.0)
    async with Runtime(tmp_path, options=options) as runtime:
        pod = await runtime.run_pod(Pod(name="web"))
        created = await runtime.create_container(pod.id, Container())

    assert created.container.env == ("HELLO=from web",)


def test_the_configuration_is_read() -> None:
    [text] = blocks("yaml")

    config = parse_config(text)
    assert isinstance(config, TopologyAwareConfig)
    assert config != TopologyAwareConfig()
    assert config.reserved_pool_namespaces == ("kube-system",)


def test_the_picture_of_the_demo_is_its_output() -> None:
    command = (sys.executable, "-m", "nri_resmgr", "demo", "--machine", "2s2n2c2t")
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    picture = next(block for block in blocks("text") if "container  qos" in block)

    assert picture in shown.stdout


def test_every_page_it_links_is_there() -> None:
    links = re.findall(r"\]\(((?:docs|conf\.d|CONTRIBUTING)[^)]*)\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_index_of_the_documentation_has_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    linked = set(re.findall(r"\]\(([^)#]*)", index))
    pages = {f"{one.name}{'/' * one.is_dir()}" for one in (ROOT / "docs").iterdir()}

    assert pages - linked == {"README.md"}


def test_every_make_target_it_names_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"\bmake ([a-z-]+)", README))

    assert named
    assert {name for name in named if f"\n{name}:" not in makefile} == set()
