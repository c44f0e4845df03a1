"""The control socket in the file system, for root and the daemon's user.

With a spool folder, the agent connects as well, which is another user. Then the socket
is open to all, and the kernel's word on the peer's user decides.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.host.trust import check_owner
from nri_resmgr.values import HostError

_PRIVATE_FOLDER: Final = 0o700
_PRIVATE: Final = 0o600
_PASSABLE_FOLDER: Final = 0o711
_OPEN: Final = 0o666
_BACKLOG: Final = 16
_CREDENTIALS: Final = struct.Struct("iII")  # struct ucred of unix(7): pid, uid, gid


@dataclass(eq=False)
class ControlSocketUnusable(HostError):
    """No control socket can be made at this path."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; choose another --control-socket, '' for none"


@contextlib.contextmanager
def control_socket(path: str) -> Iterator[socket.socket]:
    """Listen at *path* until the end of the context, and remove the socket.

    Raises:
        ControlSocketUnusable: See `open_control_socket`; or it cannot be removed.
        UntrustedState: Others may write to its folder.
    """
    listener, remove = open_control_socket(path)
    with listener:
        try:
            yield listener
        finally:
            remove()


def open_control_socket(
    path: str, *, for_agent: bool = False
) -> tuple[socket.socket, Callable[[], None]]:
    """Listen at *path*; return the listener, and a function that removes the socket.

    A socket left by a killed process is replaced. Missing folders are created, the
    last one without access for others.

    Args:
        path: Of the socket.
        for_agent: Whether other users may connect; `peer_of` has who it is.

    Raises:
        ControlSocketUnusable: Another process listens there, the file is not a socket,
            or the operating system refuses.
        UntrustedState: Others may write to its folder.
    """
    with _usable(path):
        folder = Path(path).parent
        _make_folder(folder)
        if for_agent and stat.S_IMODE(folder.stat().st_mode) == _PRIVATE_FOLDER:
            folder.chmod(_PASSABLE_FOLDER)
        _remove_stale(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Before bind: at no moment may others connect.
            os.fchmod(listener.fileno(), _PRIVATE)
            listener.bind(path)
            if for_agent:
                Path(path).chmod(_OPEN)  # not before: the umask would apply
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            ours = _identity(path)
        except BaseException:
            listener.close()
            raise

    def remove() -> None:
        # Another process may have made its own socket there by now.
        with _usable(path):
            if _identity(path) == ours:
                Path(path).unlink()

    return listener, remove


def refusal_of_peer(connected: socket.socket) -> str:
    """Return why a client is refused; empty for root and the daemon's user."""
    uid = peer_of(connected)
    if uid in (0, os.geteuid()):
        return ""
    return f"user {uid} has no access; only root has"


def peer_of(connected: socket.socket) -> int:
    """Return the user that a client runs as."""
    credentials = connected.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    )
    _, uid, _ = _CREDENTIALS.unpack(credentials)
    return int(uid)


def _make_folder(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(_PRIVATE_FOLDER)
    check_owner(str(folder), folder.stat())


def _remove_stale(path: str) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ControlSocketUnusable(path, "exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # with a full queue, a process listens as well
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
        except BlockingIOError:
            pass
    raise ControlSocketUnusable(path, "another process listens there")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _usable(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ControlSocketUnusable(path, why) from None
