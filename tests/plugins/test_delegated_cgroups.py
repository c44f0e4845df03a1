"""Writable cgroups: only where the kernel guards the container's own cgroup."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.stub import Container, Mount, Pod
from nri_resmgr.testing import Runtime
from tests.plugins.programs import PLUGINS, check_dropped, installed, running

pytestmark = pytest.mark.process

PROGRAM = PLUGINS / "writable-cgroups"
READ_ONLY = Mount("/sys/fs/cgroup", "cgroup", "cgroup", ("ro",))
ASKS = Pod(annotations={"cgroups.noderesource.dev/writable": "true"})
PROC = "23 1 0:21 / /proc rw - proc proc rw\n"


def mounted(point: str, kind: str, options: str) -> str:
    return f"{PROC}31 23 0:26 / {point} rw shared:4 - {kind} {kind} {options}\n"


async def options_of_the_mount(runtime: Runtime) -> tuple[str, ...]:
    pod = await runtime.run_pod(ASKS)
    created = await runtime.create_container(pod.id, Container(mounts=(READ_ONLY,)))
    (mount,) = created.container.mounts
    return mount.options


@pytest.mark.parametrize(
    "mountinfo",
    [
        pytest.param(mounted("/sys/fs/cgroup", "cgroup2", "rw"), id="not delegated"),
        pytest.param(
            mounted("/sys/fs/cgroup/unified", "cgroup2", "rw,nsdelegate"),
            id="beside version 1",
        ),
        pytest.param(mounted("/mnt", "cgroup2", "rw,nsdelegate"), id="elsewhere"),
        pytest.param(
            mounted("/sys/fs/cgroup", "cgroup", "rw,nsdelegate"), id="version 1"
        ),
        pytest.param(
            mounted("/sys/fs/cgroup", "cgroup2", "rw,nsdelegates"), id="another option"
        ),
        pytest.param(PROC, id="no cgroups"),
        pytest.param("", id="an empty table"),
        pytest.param(None, id="no table"),
    ],
)
async def test_elsewhere_the_mount_stays_read_only(
    tmp_path: Path, mountinfo: str | None
) -> None:
    table, log = tmp_path / "mountinfo", tmp_path / "log"
    config = tmp_path / "config.yaml"
    config.write_text(f"hostMountFile: {table}")
    if mountinfo is not None:
        table.write_text(mountinfo)
    async with Runtime(tmp_path) as runtime:
        flags = ("--socket", str(runtime.socket_path), "--config", str(config))
        async with running(PROGRAM, *flags, log=log):
            await runtime.synchronized("10-writable-cgroups")
            found = await options_of_the_mount(runtime)

    assert found == ("ro",)
    assert [name for name in EVENTS if name in log.read_text()] == EVENTS


EVENTS = ["cgroups.not-delegated", "cgroups.left-read-only"]


async def test_the_document_names_the_table(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(mounted("/sys/fs/cgroup", "cgroup2", "rw,nsdelegate"))
    document = f"hostMountFile: {table}\n"
    options = installed(PROGRAM, "writable-cgroups", document, tmp_path)
    async with Runtime(tmp_path, options=options) as runtime:
        found = await options_of_the_mount(runtime)

    assert found == ("rw",)


async def test_a_wrong_document_is_reported(tmp_path: Path) -> None:
    options = installed(PROGRAM, "writable-cgroups", "hostMounts: /a", tmp_path)

    await check_dropped(tmp_path, options, "$.hostMounts: unknown key")
