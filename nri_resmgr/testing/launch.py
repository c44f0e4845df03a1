"""Plugins that the runtime launches from a folder, with a socket as descriptor 3."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.host.bounded import DOCUMENT, read_file
from nri_resmgr.testing.errors import StartFailed

_PLUGIN_FD: Final = 3
_ANY_EXECUTE_BIT: Final = 0o111
_FILE_NAME: Final = re.compile(r"(?P<index>[0-9]{2})-(?P<base>.+)")
_WASM: Final = b"\0asm"


class Installed(msgspec.Struct, frozen=True):
    """A plugin file in the folder.

    Attributes:
        path: The executable.
        index: The two digits of its name.
        base: The rest of its name.
        config: Text of its drop-in file; empty without one.
    """

    path: Path
    index: str
    base: str
    config: str


def discover(folder: Path, config_folder: Path | None) -> list[Installed]:
    """Return the plugins in a folder, sorted by name.

    Subfolders and files without an execute bit are ignored.

    Raises:
        StartFailed: An executable is not named ``NN-name``, or a drop-in file cannot be
            read. Real runtimes fail to start then, too.
    """
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() or not path.stat().st_mode & _ANY_EXECUTE_BIT:
            continue
        match = _FILE_NAME.fullmatch(path.name)
        if match is None:
            raise StartFailed(
                f"failed to discover plugins: invalid plugin name {path.name!r}, "
                "idx-pluginname expected"
            )
        if _is_wasm(path):
            raise StartFailed(f"{path.name} is WASM, which this runtime cannot run")
        config = _read_config(config_folder, path.name, match["base"])
        found.append(Installed(path, match["index"], match["base"], config))
    return found


def _is_wasm(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_WASM)) == _WASM


def _read_config(folder: Path | None, *names: str) -> str:
    if folder is None:
        return ""
    for name in names:
        try:
            return read_file(folder / f"{name}.conf", DOCUMENT).decode()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StartFailed(f"failed to read configuration: {error}") from error
    return ""


class PluginProcess:
    """A running plugin that the runtime launched.

    Attributes:
        pid: Id of its process.
        exit_status: As `os.waitstatus_to_exitcode` returns it; None while it runs.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exit_status: int | None = None
        self._exited = asyncio.Event()
        self._pidfd = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    async def wait(self) -> int:
        """Wait for its end; return the exit status."""
        await self._exited.wait()
        assert self.exit_status is not None  # noqa: S101 - set before the event
        return self.exit_status

    def kill(self) -> None:
        """Send SIGKILL, as runtimes do to plugins that they have disconnected."""
        if self.exit_status is None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def end(self, grace: float) -> None:
        """Wait *grace* seconds for its end, then kill it."""
        try:
            async with asyncio.timeout(grace):
                await self._exited.wait()
        except TimeoutError:
            self.kill()
            await self._exited.wait()

    def _reap(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.exit_status = os.waitstatus_to_exitcode(status)
        self._exited.set()


def launch(plugin: Installed, output: Path) -> tuple[PluginProcess, socket.socket]:
    """Start a plugin in the environment that real runtimes provide.

    That is three environment variables, no arguments, ``/dev/null`` as its input, and
    the socket as descriptor 3. In real runtimes *output* is ``/dev/null``, too.

    Returns:
        The process, and the runtime's end of the socket.

    Raises:
        StartFailed: The file cannot be executed.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    environment = {
        "NRI_PLUGIN_NAME": plugin.base,
        "NRI_PLUGIN_IDX": plugin.index,
        "NRI_PLUGIN_SOCKET": str(_PLUGIN_FD),
    }
    with theirs:
        try:
            pid = os.posix_spawn(
                plugin.path,
                [str(plugin.path)],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), _PLUGIN_FD),
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(output), append, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                # Python ignores SIGPIPE, and a child would inherit that.
                setsigdef=[signal.SIGPIPE],
            )
        except OSError as error:
            ours.close()
            raise StartFailed(f"failed to start {plugin.path.name}: {error}") from error
    return PluginProcess(pid), ours
