"""Replaces itself by a program whose system calls another process answers first.

Run with a number of a connected socket, over which the listener of the filter is
sent, the numbers of the system calls, and the program with its arguments. The filter
is the kernel's (`seccomp_unotify(2)`): it holds for every thread and library of the
program, needs no privileges, and changes nothing else about it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import sys
from typing import Final

# linux/prctl.h, linux/seccomp.h and linux/bpf_common.h
_NO_NEW_PRIVS: Final = 38
_END_WITH_PARENT: Final = 1
_SECCOMP: Final = 317  # of x86-64
_SET_FILTER: Final = 1
_NEW_LISTENER: Final = 1 << 3
# Signals wait for the answer. Otherwise one would repeat the call, and count it twice.
_WAIT_KILLABLE: Final = 1 << 5
_ALLOW: Final = 0x7FFF0000
_NOTIFY: Final = 0x7FC00000
_LOAD: Final = 0x20  # a word of struct seccomp_data
_JUMP_IF: Final = 0x15
_RETURN: Final = 0x06
_NUMBER, _FIRST_ARGUMENT = 0, 16  # offsets

# The call that sends the listener cannot wait for an answer of the listener.
_CHANNEL: Final = 999


def _instruction(code: int, then: int, otherwise: int, value: int) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)


def _program(numbers: list[int]) -> bytes:
    left = len(numbers)
    parts = [
        _instruction(_LOAD, 0, 0, _FIRST_ARGUMENT),
        _instruction(_JUMP_IF, left + 1, 0, _CHANNEL),
        _instruction(_LOAD, 0, 0, _NUMBER),
    ]
    for place, number in enumerate(numbers):
        parts.append(_instruction(_JUMP_IF, left - place, 0, number))
    parts.append(_instruction(_RETURN, 0, 0, _ALLOW))
    parts.append(_instruction(_RETURN, 0, 0, _NOTIFY))
    return b"".join(parts)


def listener_for(numbers: list[int]) -> int:
    """Filter this process; return the descriptor that its calls arrive at."""
    program = ctypes.create_string_buffer(_program(numbers))
    length = (len(program) - 1) // 8
    header = struct.pack("HxxxxxxP", length, ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    # Without the test nothing answers, each call fails, and it would go on for ever.
    if libc.prctl(_END_WITH_PARENT, signal.SIGKILL):
        raise OSError(ctypes.get_errno(), "parent-death signal")
    flags = _NEW_LISTENER | _WAIT_KILLABLE
    listener: int = libc.syscall(_SECCOMP, _SET_FILTER, flags, header)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


def main(channel: str, numbers: str, *command: str) -> None:
    """Install the filter, and become the program."""
    os.dup2(int(channel), _CHANNEL, inheritable=False)
    os.close(int(channel))
    connected = socket.socket(fileno=_CHANNEL)
    found = listener_for([int(number) for number in numbers.split(",")])
    socket.send_fds(connected, [b"."], [found])
    # Neither descriptor outlives this.
    os.execv(command[0], command)  # noqa: S606 - no shell


if __name__ == "__main__":
    main(*sys.argv[1:])
