"""Whatever is in the spool folder, the daemon serves, names it, and stays small."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from nri_resmgr.control.client import Client
from nri_resmgr.spool import ADJUSTMENTS, CONFIGURATION
from tests.control.daemon_parts import ask
from tests.daemon.host_nodes import PLAIN, host_node
from tests.daemon.spooled import (
    hand_over_adjustments,
    hand_over_configuration,
    put,
    spool,
)
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

FILES: Final = (CONFIGURATION, ADJUSTMENTS)

# 80 MiB are the values of the largest text that is read, beside a process of 40. The
# limit of the manifests is 192.
MOST: Final = 130 << 10  # KiB above what it had before


def large_document(folder: Path) -> None:
    for file in FILES:
        (folder / file).unlink(missing_ok=True)
    hand_over_configuration(folder, "#" * (3 << 20) + "\n")
    hand_over_adjustments(folder, "#" * (3 << 20) + "\n")


def large_files(folder: Path) -> None:
    for file in FILES:
        put(folder / file, b"#" * (5 << 20))


def endless_files(folder: Path) -> None:
    for file in FILES:
        with (folder / file).open("wb") as sparse:
            sparse.truncate(1 << 40)


def links(folder: Path) -> None:
    secret = folder.parent / "secret"
    secret.write_text("kind: TopSecret\n")
    for file in FILES:
        (folder / file).symlink_to(secret)


def fifos(folder: Path) -> None:
    for file in FILES:
        os.mkfifo(folder / file, 0o644)


def folders(folder: Path) -> None:
    for file in FILES:
        (folder / file).mkdir()


def bad_text(folder: Path) -> None:
    for file in FILES:
        put(folder / file, b"# nri-resmgr spool 1\n# kind: \xff\xfe\n\xff")


def many_values(folder: Path) -> None:
    """Write nearly as many as are read, in more adjustments than any node has."""
    row = "- {{apiVersion: config.nri/v1alpha1, metadata: {{name: a{}}}}}\n"
    hand_over_adjustments(folder, "".join(map(row.format, range(14_000))))
    row = "  - {{name: c{}, minFreq: 1GHz}}\n"
    rows = "".join(map(row.format, range(16_000)))
    hand_over_configuration(folder, f"{PLAIN}  cpuClasses:\n{rows}  other: {{}}\n")


def many_for_this_node(folder: Path) -> None:
    row = (
        "- {{apiVersion: config.nri/v1alpha1, metadata: {{name: a{}}},"
        " spec: {{scope: [{{}}], toptierLimit: 1Mi}}}}\n"
    )
    hand_over_adjustments(folder, "".join(map(row.format, range(5000))))
    put(folder / CONFIGURATION, b"")


# What is wrong with the configuration, and with the adjustments.
HOSTILE: Final[tuple[tuple[Callable[[Path], None], str, str], ...]] = (
    (large_document, "characters, expected at most", "characters, expected at most"),
    (large_files, "a spool file may have 4 MiB", "a spool file may have 4 MiB"),
    (endless_files, "a spool file may have 4 MiB", "a spool file may have 4 MiB"),
    (links, "is a symbolic link", "is a symbolic link"),
    (fifos, "is no regular file", "is no regular file"),
    (folders, "is no regular file", "is no regular file"),
    (bad_text, "printable ASCII", "printable ASCII"),
    (many_values, "other: unknown key", "scope: missing"),
    (many_for_this_node, "no spool file", "5000 adjustments are for this node"),
)


def emptied(folder: Path) -> None:
    for file in FILES:
        path = folder / file
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def problems(answer: dict[str, Any]) -> tuple[str, str]:
    """Return what is wrong with the configuration, and with the adjustments."""
    document, adjustments = both(answer)
    errors = list((adjustments or {}).get("errors", {}).values())
    return (
        f"{document['problem']} {document['why']}" if document else "",
        f"{adjustments['problem']} {errors[:1]}" if adjustments else "",
    )


def both(answer: dict[str, Any]) -> tuple[Any, Any]:
    return answer["configuration"], answer["adjustments"]


def memory(pid: int, row: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(dict(one.split(":", 1) for one in text.splitlines())[row].split()[0])


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - links that come and go


async def handed_over(client: Client) -> None:
    """Wait until the daemon has read both files."""
    async with asyncio.timeout(60):
        while True:
            if None not in both(await ask(client, "/v1/cluster")):
                return
            await asyncio.sleep(0.1)


async def test_any_content_of_the_folder_is_named_and_delays_nothing(
    tmp_path: Path,
) -> None:
    folder, socket = spool(tmp_path), str(tmp_path / "run/control.sock")
    hand_over_configuration(folder, PLAIN)
    hand_over_adjustments(folder, "[]\n")
    # Names are not listed, so that others cost nothing.
    for number in range(10_000):
        (folder / f"{number}.yaml").touch()
    async with host_node(tmp_path, PLAIN) as node:
        flags = ("--spool", str(folder), "--control-socket", socket)
        async with node.daemon(*flags) as process:
            await node.says("control.listening")
            client, pid = Client(socket), process.pid

            async def found(document: str, adjustments: str) -> None:
                seen = ("", "")
                with suppress(TimeoutError):
                    async with asyncio.timeout(60):
                        while True:
                            seen = problems(await ask(client, "/v1/cluster"))
                            if document in seen[0] and adjustments in seen[1]:
                                return
                            await asyncio.sleep(0.1)
                raise AssertionError(f"{seen}, not {document!r} and {adjustments!r}")

            # Its watch of the folder, and the folder of containers' files, stay open.
            await node.pod("first", 1)
            await handed_over(client)
            before, opened = memory(pid, "VmRSS"), descriptors(pid)
            for spoil, *why in HOSTILE:
                emptied(folder)
                spoil(folder)
                name = await node.pod(spoil.__name__, 1)  # while it is read
                await found(*why)
                pod = node.runtime.world.containers[name].pod_sandbox_id
                await node.runtime.stop_pod(pod)
                await node.runtime.remove_pod(pod)
            peak = memory(pid, "VmHWM")
            emptied(folder)
            hand_over_configuration(folder, PLAIN.replace(":0", ":1"), generation=2)
            hand_over_adjustments(folder, "[]\n")
            await until(lambda: bool(node.said("configuration.accepted")))
            state = await ask(client, "/v1/state")
            await until(lambda: descriptors(pid) <= opened)
    shutil.rmtree(folder)

    assert state["cpus"]["reserved"] == "1"
    assert "TopSecret" not in (tmp_path / "log").read_text()
    print(f"{before >> 10} MiB before, {peak >> 10} at most")
    assert peak - before < MOST
