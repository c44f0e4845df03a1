"""All plugins of the folder: installed by their names, launched, and as documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from nri_resmgr.cli.install import Folders, install
from nri_resmgr.stub import Container, ContainerAdjustment, Identity, Pod
from nri_resmgr.testing import Runtime
from tests.plugins.programs import PLUGINS, REPOSITORY, SAMPLES, run_to_end, running
from tests.test_runtime.launching import launching

pytestmark = pytest.mark.process

# The others use files or the socket of the machine by default, and have tests of their
# own.
NAMES = sorted(
    {path.name for path in PLUGINS.iterdir()}
    - {"differ", "logger", "resource-policy", "template"}
)


@pytest.mark.parametrize("name", NAMES)
async def test_a_plugin_is_installed_by_its_name_and_launched(
    tmp_path: Path, name: str
) -> None:
    folders = Folders(tmp_path / "plugins", tmp_path / "conf.d")
    done = install(name, Identity(name, "10"), folders)
    async with Runtime(tmp_path, options=launching(tmp_path)) as runtime:
        assert runtime.plugins == (f"10-{name}",)
        process = runtime.processes[0]

    assert process.exit_status == 0
    assert done.config_is_new == (SAMPLES / f"{name}.conf").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_without_a_runtime_it_ends_with_one_sentence(tmp_path: Path, name: str) -> None:
    socket = str(tmp_path / "none")

    ended, said = run_to_end(PLUGINS / name, "--index", "10", "--socket", socket)

    assert (ended, len(said.splitlines())) == (1, 1)
    assert "cannot connect to the NRI socket" in said


@pytest.mark.parametrize(
    "name", ["device-injector", "memory-policy", "rdt", "ulimit-adjuster"]
)
async def test_the_pod_of_the_readme_gets_what_it_asks_for(
    tmp_path: Path, name: str
) -> None:
    text = (PLUGINS / name / "README.md").read_text()
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    annotations = yaml.safe_load(block)["metadata"]["annotations"]
    (container,) = set(re.findall(r"/container\.(\w+)", block))
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--index", "10")
        async with running(PLUGINS / name, *flags):
            await runtime.synchronized(f"10-{name}")
            pod = await runtime.run_pod(Pod(annotations=annotations))
            created = await runtime.create_container(pod.id, Container(name=container))

    assert created.adjustment != ContainerAdjustment()


def test_the_readme_lists_all_plugins() -> None:
    text = (REPOSITORY / "README.md").read_text()
    (row,) = re.findall(r"^\| Shipped plugins \| (.*) \|$", text, re.MULTILINE)

    assert set(re.findall(r"\(plugins/([a-z-]+)/README\.md\)", row)) == {
        path.name for path in PLUGINS.iterdir()
    }
