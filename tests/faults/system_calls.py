"""The system calls of a daemon under test: counted, and made to fail.

A thread of the test answers each call before the kernel does; see
`tests.faults.filtered`. It knows which file, socket or memory the call is about.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import attrs

_ACTIONS: Final = Path("/proc/sys/kernel/seccomp/actions_avail")

# linux/seccomp.h: struct seccomp_notif, its response, and their ioctls.
_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_CALL: Final = struct.Struct("QIIiIQ6Q")
_ANSWER: Final = struct.Struct("QqiI")
_CONTINUE: Final = 1

# From Linux 6.6 on: the caller and its answer take turns on one CPU, at half the cost.
_SET_FLAGS: Final = 0x40082104
_SYNC_WAKE_UP: Final = 1

_PIDFD_GETFD: Final = 438
_LIBC: Final = ctypes.CDLL(None, use_errno=True)

_MOST_PATH: Final = 4096  # bytes, PATH_MAX
_CWD: Final = -100  # AT_FDCWD
_ANONYMOUS: Final = 0x20  # MAP_ANONYMOUS
_THREAD: Final = 0x10000  # CLONE_THREAD

# Calls by what their arguments are; the numbers are those of x86-64.
_PATHS: Final = {
    "open": 2,
    "stat": 4,
    "lstat": 6,
    "rename": 82,
    "mkdir": 83,
    "rmdir": 84,
    "unlink": 87,
    "readlink": 89,
    "chmod": 90,
}
_PATHS_AT: Final = {
    "openat": 257,
    "mkdirat": 258,
    "newfstatat": 262,
    "unlinkat": 263,
    "renameat": 264,
    "readlinkat": 267,
    "utimensat": 280,
    "statx": 332,
}
_DESCRIPTORS: Final = {
    "read": 0,
    "write": 1,
    "fstat": 5,
    "pread64": 17,
    "pwrite64": 18,
    "writev": 20,
    "connect": 42,
    "accept": 43,
    "sendto": 44,
    "recvfrom": 45,
    "sendmsg": 46,
    "recvmsg": 47,
    "bind": 49,
    "listen": 50,
    "flock": 73,
    "fsync": 74,
    "fdatasync": 75,
    "ftruncate": 77,
    "fchmod": 91,
    "getdents64": 217,
    "accept4": 288,
}
_NEW_DESCRIPTORS: Final = {
    "socket": 41,
    "socketpair": 53,
    "eventfd2": 290,
    "epoll_create1": 291,
    "pipe2": 293,
    "inotify_init1": 294,
    "epoll_ctl": 233,
}
_WATCHES: Final = {"inotify_add_watch": 254}
_MEMORY: Final = {"mmap": 9, "brk": 12, "mremap": 25}
_THREADS: Final = {"clone": 56, "clone3": 435}

_NAMES: Final = {
    number: name
    for group in (
        _PATHS,
        _PATHS_AT,
        _DESCRIPTORS,
        _NEW_DESCRIPTORS,
        _WATCHES,
        _MEMORY,
        _THREADS,
    )
    for name, number in group.items()
}

# The same request, by another name of the C library.
_SAME: Final = {
    "open": "openat",
    "stat": "newfstatat",
    "lstat": "newfstatat",
    "statx": "newfstatat",
    "rename": "renameat",
    "mkdir": "mkdirat",
    "rmdir": "unlinkat",
    "unlink": "unlinkat",
    "readlink": "readlinkat",
    "accept": "accept4",
    "clone3": "clone",
    "brk": "mmap",
    "mremap": "mmap",
}


def why_not_here() -> str:
    """Return what keeps system calls from being filtered here; empty for nothing."""
    if platform.machine() != "x86_64":
        return "the numbers of system calls are those of x86-64"
    if not _ACTIONS.exists() or "user_notif" not in _ACTIONS.read_text().split():
        return "this kernel has no seccomp_unotify(2)"
    return ""


def numbers_of(calls: Collection[str] | None = None) -> str:
    """Return the numbers of calls for `tests.faults.filtered`; None is for all."""
    numbers = [
        number
        for number, name in sorted(_NAMES.items())
        if calls is None or _SAME.get(name, name) in calls
    ]
    return ",".join(str(number) for number in numbers)


HANG: Final = -1
"""Instead of an errno: the call waits until the fault is over."""

ALWAYS: Final = 1 << 30


class Point(NamedTuple):
    """A sort of request to the system.

    Attributes:
        call: The system call.
        place: What it is about, such as ``state`` or ``import``.
    """

    call: str
    place: str

    def __str__(self) -> str:
        return f"{self.call}/{self.place}"


@attrs.define(eq=False)
class Fault:
    """Calls that fail.

    Attributes:
        point: Which calls.
        error: Their errno, or `HANG`.
        after: How many of them succeed before.
        times: How many fail.
        hits: How many have failed.
    """

    point: Point
    error: int
    after: int = 0
    times: int = 1
    hits: int = 0
    seen: int = 0

    def __str__(self) -> str:
        error = "hang" if self.error == HANG else errno.errorcode[self.error]
        times = "always" if self.times == ALWAYS else str(self.times)
        return f"{self.point}/{error}/{self.after}/{times}"

    @classmethod
    def from_text(cls, text: str) -> Fault:
        """Read what `str` returns."""
        call, place, error, after, times = text.split("/")
        return cls(
            Point(call, place),
            HANG if error == "hang" else getattr(errno, error),
            int(after),
            ALWAYS if times == "always" else int(times),
        )

    def strikes(self, point: Point) -> bool:
        """Count a call; return whether it fails."""
        if point != self.point:
            return False
        self.seen += 1
        hit = self.after < self.seen <= self.after + self.times
        self.hits += hit
        return hit


class SystemCalls(threading.Thread):
    """Answers the calls of one process until that ends.

    Args:
        listener: The descriptor from `tests.faults.filtered`.
        place_of: Returns the place of a path or of a socket's address; None while the
            interpreter starts, which is not the daemon's.

    Attributes:
        counts: The calls so far, by point.
        faults: Those in force.
    """

    def __init__(self, listener: int, place_of: Callable[[str], str | None]) -> None:
        super().__init__(name="system calls", daemon=True)
        self._listener = listener
        with suppress(OSError):
            fcntl.ioctl(listener, _SET_FLAGS, _SYNC_WAKE_UP)
        self._place_of = place_of
        self.counts: Counter[Point] = Counter()
        self.faults: list[Fault] = []
        self._hanging: list[int] = []
        self._guard = threading.Lock()
        self._sockets: dict[str, str] = {}

    def arm(self, *faults: Fault) -> None:
        """Put faults in force, instead of those before."""
        self.faults = list(faults)

    def disarm(self) -> None:
        """End all faults; hanging calls go on."""
        with self._guard:
            self.faults = []
            hanging, self._hanging = self._hanging, []
        for call in hanging:
            self._answer(call, 0)

    def run(self) -> None:
        """Answer until the process and its threads have ended."""
        ready = select.poll()
        ready.register(self._listener, select.POLLIN)
        try:
            while not ready.poll()[0][1] & select.POLLHUP:
                buffer = bytearray(_CALL.size)
                try:
                    fcntl.ioctl(self._listener, _RECEIVE, buffer)
                except OSError:
                    continue  # killed meanwhile
                self._take(*_CALL.unpack(buffer))
        finally:
            os.close(self._listener)

    def _take(self, call: int, pid: int, _: int, number: int, *rest: int) -> None:
        arguments = rest[2:]
        error = 0
        try:
            point = self._point(pid, _NAMES[number], arguments)
        except OSError:
            point = None  # killed meanwhile
        with self._guard:
            if point is not None:
                self.counts[point] += 1
                for fault in self.faults:
                    if fault.strikes(point):
                        error = fault.error
                        break
                if error == HANG:
                    self._hanging.append(call)
                    return
        value = 0
        if error and _NAMES[number] == "brk":
            # It has no errno: without memory the kernel returns the present end of the
            # heap. The C library would take an errno for the end of a larger heap.
            with suppress(OSError):  # killed meanwhile
                error, value = 0, _heap_end(pid)
        self._answer(call, error, value)

    def _answer(self, call: int, error: int, value: int = 0) -> None:
        flags = 0 if error or value else _CONTINUE
        answer = _ANSWER.pack(call, value, -error, flags)
        with suppress(OSError):  # killed meanwhile
            fcntl.ioctl(self._listener, _SEND, answer)

    def _point(self, pid: int, name: str, arguments: tuple[int, ...]) -> Point | None:
        place: str | None
        if name in _MEMORY:
            place = self._memory(pid, name, arguments)
        elif name in _THREADS:
            place = self._place_of("[thread]")
        elif name in _NEW_DESCRIPTORS:
            place = self._place_of("[new]")
        elif name in _PATHS:
            place = self._of_path(pid, _CWD, arguments[0])
        elif name in _PATHS_AT:
            place = self._of_path(pid, _signed(arguments[0]), arguments[1])
        elif name in _WATCHES:
            place = self._of_path(pid, _CWD, arguments[1])
        elif name in ("connect", "bind"):
            place = self._place_of(_address(pid, arguments[1], arguments[2]))
        elif name == "sendto" and arguments[4]:
            # A datagram: its socket has neither an address nor a peer.
            place = self._place_of(_address(pid, arguments[4], arguments[5]))
        else:
            place = self._of_descriptor(pid, arguments[0])
        return None if place is None else Point(_SAME.get(name, name), place)

    def _memory(self, pid: int, name: str, arguments: tuple[int, ...]) -> str | None:
        if name == "brk" and arguments[0] <= _heap_end(pid):
            return None  # a question, or memory that is given back
        if name != "mmap" or arguments[3] & _ANONYMOUS:
            return self._place_of("[memory]")
        return self._of_descriptor(pid, arguments[4])

    def _of_path(self, pid: int, folder: int, address: int) -> str | None:
        base = "cwd" if folder < 0 else f"fd/{folder}"
        path = _text_at(pid, address)
        if not path.startswith("/"):
            path = str(Path(_link(f"/proc/{pid}/{base}"), path))
        return self._place_of(path)

    def _of_descriptor(self, pid: int, descriptor: int) -> str | None:
        number = _signed(descriptor)
        try:
            link = _link(f"/proc/{pid}/fd/{number}")
        except OSError:
            return None  # a wrong number: the kernel answers
        if link.startswith("socket:"):
            return self._place_of(self._sockets.get(link) or self._named(pid, number))
        return self._place_of(link)

    def _named(self, pid: int, number: int) -> str:
        """Name a socket by its own address, or that of its peer."""
        link = _link(f"/proc/{pid}/fd/{number}")
        process = os.pidfd_open(_process_of(pid))
        try:
            copied = _descriptor_of(process, number)
        finally:
            os.close(process)
        with socket.socket(fileno=copied) as found:
            name = ""
            with suppress(OSError):
                name = _text_of(found.getsockname())
            if not name:
                with suppress(OSError):
                    name = _text_of(found.getpeername())
        if name:
            self._sockets[link] = name
        return name or "[socket]"


def _heap_end(pid: int) -> int:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith("[heap]"):
            return int(line.split()[0].split("-")[1], 16)
    return 0


def _descriptor_of(process: int, number: int) -> int:
    found: int = _LIBC.syscall(_PIDFD_GETFD, process, number, 0)
    if found < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    return found


def _process_of(thread: int) -> int:
    for line in Path(f"/proc/{thread}/status").read_text().splitlines():
        if line.startswith("Tgid:"):
            return int(line.split()[1])
    return thread


def _text_of(address: object) -> str:
    if isinstance(address, bytes):
        return os.fsdecode(address)
    if isinstance(address, tuple):
        return f"[tcp:{address[1]}]"
    return str(address or "")


def _address(pid: int, where: int, size: int) -> str:
    raw = _bytes_at(pid, where, min(size, 128))
    if raw[:2] == struct.pack("H", socket.AF_UNIX):
        return os.fsdecode(raw[2:].split(b"\0")[0])
    # Of both families the port follows, the highest byte first.
    return f"[tcp:{int.from_bytes(raw[2:4])}]"


def _text_at(pid: int, address: int) -> str:
    # Up to the end of the page: the next one may not be mapped.
    first = min(_MOST_PATH, 4096 - address % 4096)
    found = _bytes_at(pid, address, first)
    if b"\0" not in found:
        found += _bytes_at(pid, address + first, 4096)
    return os.fsdecode(found.split(b"\0")[0])


def _bytes_at(pid: int, address: int, size: int) -> bytes:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(memory, size, address)
    finally:
        os.close(memory)


def _link(path: str) -> str:
    # A start of a daemon makes thousands of calls, and pathlib takes six times as long.
    return os.readlink(path)  # noqa: PTH115


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
