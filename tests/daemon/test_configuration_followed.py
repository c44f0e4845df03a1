"""A file that changes while the daemon runs, by whatever means."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.configuration.status import DocumentSource
from nri_resmgr.daemon.configuration import DaemonConfiguration, NothingToReload
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.stub import Container, LinuxContainer, Pod
from nri_resmgr.values import InputError
from tests.app.node import asking_for
from tests.daemon.documents import (
    BAD,
    TOO_MANY,
    UNFIT,
    begun,
    document,
    followed,
    hand_over,
    reserved,
    status_of,
    write,
)
from tests.waiting import until

pytestmark = pytest.mark.slow  # waits for real timers


def why(of: DaemonConfiguration) -> str:
    error = status_of(of).error
    return "" if error is None else error.why


def rewritten(path: Path, text: str) -> None:
    path.write_text(text)


def renamed_over(path: Path, text: str) -> None:
    write(path.with_suffix(".new"), text).rename(path)


def gone_for_a_while(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def as_old_as_before(path: Path, text: str) -> None:
    """A copy that keeps times, of the same size."""
    times = path.stat()
    renamed_over(path, text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize(
    "change", [rewritten, renamed_over, gone_for_a_while, as_old_as_before]
)
async def test_a_change_is_followed(
    tmp_path: Path, change: Callable[[Path, str], None]
) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)
    async with followed(configuration):
        for cpu in (2, 3):
            change(path, document(cpu))
            await until(lambda cpu=cpu: reserved(configuration) == str(cpu))  # type: ignore[misc] # a lambda's default has no type

    status = status_of(configuration)
    assert (status.source, status.name, status.generation, status.rejected) == (
        *(DocumentSource.FILE, str(path)),
        *(3, 0),
    )


def mount(folder: Path, version: str, text: str) -> None:
    """Write a ConfigMap as the kubelet does: a new folder, and a link that moves."""
    new = folder / f"..{version}"
    new.mkdir(parents=True)
    (new / "my.yaml").write_text(text)
    link = folder / "..data_tmp"
    link.symlink_to(new.name)
    link.rename(folder / "..data")
    if not (folder / "my.yaml").is_symlink():
        (folder / "my.yaml").symlink_to("..data/my.yaml")


async def test_a_mounted_config_map_is_followed(tmp_path: Path) -> None:
    mount(tmp_path, "1", document(1))
    configuration = begun(tmp_path / "my.yaml")
    async with followed(configuration):
        for cpu in (2, 3):
            mount(tmp_path, str(cpu), document(cpu))
            await until(lambda cpu=cpu: reserved(configuration) == str(cpu))  # type: ignore[misc] # a lambda's default has no type

    assert status_of(configuration).rejected == 0


async def test_a_removed_file_leaves_its_document_in_force(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)
    async with followed(configuration):
        with capture_logs() as lines:
            path.unlink()
            await until(lambda: bool(why(configuration)))
            await asyncio.sleep(0.2)
        gone = reserved(configuration), why(configuration)
        write(path, document(1))
        await until(lambda: not why(configuration))

    assert gone == ("1", f"cannot read {path}: no such file or directory")
    assert [line["event"] for line in lines] == ["configuration.rejected"]
    assert status_of(configuration).generation == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(BAD, "$.spec.preservedResources: unknown key", id="a mistake"),
        pytest.param("", "is empty; it may be being written", id="nothing in it yet"),
        pytest.param(UNFIT, TOO_MANY, id="does not fit"),
        pytest.param(document(1)[:70], "line ", id="half of it"),
    ],
)
async def test_an_invalid_file_is_read_again_when_it_changes(
    tmp_path: Path, text: str, said: str
) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)
    before = configuration.policy.state
    async with followed(configuration):
        write(path, text)
        await until(lambda: said in why(configuration))
        untouched = configuration.policy.state is before
        write(path, document(2))
        await until(lambda: reserved(configuration) == "2")

    assert (untouched, why(configuration)) == (True, "")


async def test_a_file_is_not_read_while_it_is_written(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)
    async with followed(configuration):
        with path.open("w") as file:
            for letter in document(2):
                file.write(letter)
                file.flush()
                await asyncio.sleep(0.003)
        await until(lambda: reserved(configuration) == "2")

    assert status_of(configuration).rejected == 0


async def test_a_file_that_changes_all_the_time_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)

    async def restless() -> None:
        while reserved(configuration) != "2":
            renamed_over(path, document(2))
            await asyncio.sleep(0.005)

    async with followed(configuration), asyncio.timeout(10):
        await restless()


async def test_the_fallback_is_followed_until_another_document_is_in_force(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(None, path)
    async with followed(configuration):
        write(path, document(2))
        await until(lambda: reserved(configuration) == "2")
        hand_over(configuration, document(3))
        write(path, document(4))
        await asyncio.sleep(0.5)

    assert reserved(configuration) == "3"
    with pytest.raises(NothingToReload):
        await configuration.reload()


async def test_sighup_reads_the_file_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)
    following = asyncio.create_task(configuration.follow(3600))
    await asyncio.sleep(0)
    for cpu in (2, 3, 4):
        write(path, document(cpu))
        os.kill(os.getpid(), signal.SIGHUP)
    await until(lambda: reserved(configuration) == "4")
    following.cancel()

    assert status_of(configuration).generation == 2


async def test_sighup_without_a_file_is_logged() -> None:
    configuration = begun()
    async with followed(configuration):
        with capture_logs() as lines:
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: bool(lines))

    assert [line["event"] for line in lines] == ["configuration.not-reloaded"]


async def test_a_failed_reload_reports_the_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)
    write(path, BAD)
    with pytest.raises(InputError, match="unknown key"):
        await configuration.reload()
    path.unlink()
    with pytest.raises(UnreadableFile):
        await configuration.reload()
    write(path, document(2))
    await configuration.reload()

    assert (reserved(configuration), status_of(configuration).rejected) == ("2", 2)


async def test_the_same_reason_is_reported_once(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)
    path.unlink()
    with capture_logs() as lines:
        for _ in range(3):
            with pytest.raises(UnreadableFile):
                await configuration.reload()
        await asyncio.sleep(0)

    assert [line["event"] for line in lines] == ["configuration.rejected"]
    assert status_of(configuration).rejected == 3


async def test_cpus_that_a_cgroup_names_are_read_again(tmp_path: Path) -> None:
    cgroup = tmp_path / "sys/fs/cgroup/system"
    cgroup.mkdir(parents=True)
    write(cgroup / "cpuset.cpus.effective", "1\n")
    text = document(1).replace("cpuset:1", "cgroup:system")
    path = write(tmp_path / "my.yaml", text)
    configuration = begun(path, host=tmp_path)
    write(cgroup / "cpuset.cpus.effective", "2\n")
    await configuration.reload()

    pools = configuration.policy.policy.pools(configuration.policy.state)
    assert {str(pool.reserved) for pool in pools} == {"", "2"}


async def test_a_mistake_is_counted_once(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)
    async with followed(configuration):
        write(path, BAD)
        with pytest.raises(InputError):
            await configuration.reload()
        await asyncio.sleep(0.5)  # it was read too soon to be sure of it

    assert status_of(configuration).rejected == 1


async def test_a_hundred_concurrent_reloads_apply_the_present_file(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "my.yaml", document(1))
    configuration = begun(path)
    write(path, document(2))
    await asyncio.gather(*(configuration.reload() for _ in range(100)))

    assert (reserved(configuration), status_of(configuration).generation) == ("2", 2)


async def test_a_forced_reload_may_take_cpus_from_containers(tmp_path: Path) -> None:
    path = write(tmp_path / "my.yaml", document(0))
    configuration = begun(path)
    linux = LinuxContainer(resources=asking_for(7))
    container = Container("c1", "p1", "web", linux=linux)
    configuration.policy.create_container(Pod("p1", "web"), container)
    narrow = document(0).replace(
        "spec: {", "spec: {availableResources: {cpu: 'cpuset:0-5'}, "
    )
    write(path, narrow)

    with pytest.raises(InputError, match="has CPU 1-7 and would have none"):
        await configuration.reload()
    refused = status_of(configuration)
    await configuration.reload(force=True)

    assert (refused.text, refused.rejected, refused.generation) == (document(0), 1, 1)
    accepted = status_of(configuration)
    assert (accepted.text, accepted.error, accepted.generation) == (narrow, None, 2)
