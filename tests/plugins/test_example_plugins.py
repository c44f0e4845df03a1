"""The page of examples: its programs, with its configurations, do what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from nri_proto import nri_pb2
from nri_resmgr.cli.main import main
from nri_resmgr.stub import Container, LinuxCpu, LinuxResources, Pod
from nri_resmgr.stub.model import Device, LinuxContainer
from nri_resmgr.testing import PluginRefused, Runtime, RuntimeOptions
from tests.plugins.programs import REPOSITORY, running
from tests.test_runtime.launching import launching

pytestmark = pytest.mark.process

PAGE: Final = (REPOSITORY / "docs" / "example-plugins.md").read_text()
BLOCKS: Final = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILES: Final = {
    text.partition("\n")[0].removeprefix("# "): text
    for kind, text in BLOCKS
    if kind != "sh"
}
NAMES: Final = ("namespace_env", "named_devices", "label_weight")

# The devices of the page are missing on some machines, these are on none.
PRESENT: Final = {"/dev/fuse": "/dev/zero", "/dev/kvm": "/dev/full"}
ZERO: Final = Device("/dev/zero", "c", 1, 5)
FULL: Final = Device("/dev/full", "c", 1, 7)


def write(directory: Path, name: str, paths: Mapping[str, str]) -> None:
    (directory / f"{name}.py").write_text(FILES[f"{name}.py"])
    config = FILES[f"{name}.conf"]
    for old, new in paths.items():
        config = config.replace(old, new)
    (directory / f"{name}.conf").write_text(config)


def install_as_documented(
    directory: Path, name: str, paths: Mapping[str, str] = PRESENT
) -> RuntimeOptions:
    """Run the page's command for one of its programs."""
    write(directory, name, paths)
    (command,) = [text for kind, text in BLOCKS if kind == "sh"]
    words = command.replace("namespace_env", name).replace("./", "").split()[2:]
    words = [str(directory / word) if "." in word else word for word in words]
    words += ["--plugin-dir", str(directory / "plugins")]
    assert main([*words, "--config-dir", str(directory / "conf.d")]) == 0
    return launching(directory)


def pod_of(name: str) -> Pod:
    metadata: dict[str, Any] = yaml.safe_load(FILES[f"{name}.pod"])["metadata"]
    return Pod(
        name=metadata["name"],
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
    )


def with_shares(shares: int) -> LinuxResources:
    return LinuxResources(cpu=LinuxCpu(shares=shares))


def container_with(shares: int) -> Container:
    return Container(linux=LinuxContainer(resources=with_shares(shares)))


def test_the_page_has_no_other_blocks() -> None:
    assert [*FILES] == [
        *("namespace_env.py", "namespace_env.conf"),
        *("named_devices.py", "named_devices.conf", "named_devices.pod"),
        *("label_weight.py", "label_weight.conf", "label_weight.pod"),
    ]
    assert len(BLOCKS) == len(FILES) + 1


def test_type_checkers_find_nothing_in_the_programs(tmp_path: Path) -> None:
    for name in NAMES:
        write(tmp_path, name, {})
    programs = [f"{name}.py" for name in NAMES]
    done = subprocess.run(
        (sys.executable, "-m", "mypy", "--strict", *programs),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("namespace", "env"),
    [
        pytest.param(
            "shop",
            {"TEAM": "own", "HTTPS_PROXY": "http://proxy.shop:3128"},
            id="all but its own",
        ),
        pytest.param("lab", {"TEAM": "own"}, id="has all"),
        pytest.param("default", {"TEAM": "own"}, id="another namespace"),
    ],
)
async def test_a_container_gets_the_variables_that_it_has_not(
    namespace: str, env: dict[str, str], tmp_path: Path
) -> None:
    options = install_as_documented(tmp_path, "namespace_env")
    async with Runtime(tmp_path, options=options) as runtime:
        pod = await runtime.run_pod(Pod(namespace=namespace))
        created = await runtime.create_container(pod.id, Container(env=("TEAM=own",)))

    assert created.container.environment == env


@pytest.mark.parametrize(
    ("container", "devices"), [("build", (ZERO, FULL)), ("proxy", (ZERO,))]
)
async def test_a_container_gets_the_devices_that_its_pod_names(
    container: str, devices: tuple[Device, ...], tmp_path: Path
) -> None:
    options = install_as_documented(tmp_path, "named_devices")
    async with Runtime(tmp_path, options=options) as runtime:
        pod = await runtime.run_pod(pod_of("named_devices"))
        created = await runtime.create_container(pod.id, Container(name=container))

    assert created.adjustment.linux is not None
    assert created.adjustment.linux.devices == devices


async def test_an_unknown_device_is_refused_as_the_page_says(tmp_path: Path) -> None:
    options = install_as_documented(tmp_path, "named_devices")
    async with Runtime(tmp_path, options=options) as runtime:
        annotations = {"devices.example.com/pod": "[gpu]"}
        pod = await runtime.run_pod(Pod(annotations=annotations))
        with pytest.raises(PluginRefused) as refusal:
            await runtime.create_container(pod.id, Container())

    assert f"is refused: `{refusal.value.message}`" in PAGE.replace("\n", " ")


async def test_a_device_that_the_node_lacks_is_refused(tmp_path: Path) -> None:
    options = install_as_documented(
        tmp_path, "named_devices", {"/dev/fuse": "/dev/no-fuse"}
    )
    async with Runtime(tmp_path, options=options) as runtime:
        pod = await runtime.run_pod(pod_of("named_devices"))
        with pytest.raises(PluginRefused) as refusal:
            await runtime.create_container(pod.id, Container())

    assert refusal.value.message == "device /dev/no-fuse: No such file or directory"


@pytest.mark.parametrize(("tier", "shares"), [(None, 4096), ("bronze", 128), ("", 512)])
async def test_a_container_has_the_weight_of_its_pod_after_a_resize_too(
    tier: str | None, shares: int, tmp_path: Path
) -> None:
    labelled = pod_of("label_weight") if tier is None else Pod(labels={"tier": tier})
    options = install_as_documented(tmp_path, "label_weight")
    async with Runtime(tmp_path, options=options) as runtime:
        pod = await runtime.run_pod(labelled)
        created = await runtime.create_container(pod.id, container_with(512))
        assert created.container.cpu.shares == shares
        await runtime.update_container(created.container.id, with_shares(700))
        (container,) = runtime.containers

    assert container.cpu.shares == (700 if shares == 512 else shares)


async def test_running_containers_get_their_weight_once(tmp_path: Path) -> None:
    write(tmp_path, "label_weight", {})
    async with Runtime(tmp_path) as runtime:
        for labels in ({"tier": "gold"}, {"tier": "none"}, {"tier": "bronze"}):
            pod = await runtime.run_pod(Pod(labels=labels))
            await runtime.create_container(pod.id, container_with(128))
        flags = ("--socket", str(runtime.socket_path))
        config = ("--config", str(tmp_path / "label_weight.conf"))
        async with running(tmp_path / "label_weight.py", *flags, *config):
            await runtime.synchronized("10-label_weight")
            weights = [container.cpu.shares for container in runtime.containers]
        (updates,) = [
            [update.container_id for update in record.body.update]
            for record in runtime.records
            if isinstance(record.body, nri_pb2.SynchronizeResponse)
        ]

    assert weights == [4096, 128, 128]
    assert updates == [runtime.containers[0].id]
