"""Readers of CRI-O's isolation annotations; each refusal says what is accepted.

CRI-O ignores some unknown words. Here they are mistakes: otherwise a typing error would
leave a container without isolation, unnoticed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nri_resmgr.classes.cpu.requests import BadCpuClassRequest, read_cpu_request
from nri_resmgr.classes.isolation.requests import IrqBalancing
from nri_resmgr.values import NO_CPUS, InputError

# Accepted by CRI-O before it had these words.
_OLD: Final = {"true": IrqBalancing.DISABLED, "false": IrqBalancing.ENABLED}

_GOVERNOR: Final = re.compile(r"[a-z][a-z_]{0,14}", re.ASCII)  # the kernel has 16 bytes
_SHOWN: Final = 80


@dataclass(eq=False)
class BadIsolation(InputError):
    """The value of an isolation annotation is invalid."""

    text: str
    accepted: str

    def __str__(self) -> str:
        return f"expected {self.accepted}, not {self.text[:_SHOWN]!r}"


def read_disabled(text: str) -> bool:
    """Read ``disable`` or ``enable``; True for the first.

    Source:
        CRI-O, high-performance hooks: ``true`` is an old word for ``disable``.

    >>> read_disabled("disable"), read_disabled("true"), read_disabled("enable")
    (True, True, False)
    """
    words = {"disable": True, "true": True, "enable": False, "false": False}
    if text not in words:
        raise BadIsolation(text, "disable or enable")
    return words[text]


def read_enabled(text: str) -> bool:
    """Read ``enable`` or ``disable``; True for the first."""
    if text not in ("enable", "disable"):
        raise BadIsolation(text, "enable or disable")
    return text == "enable"


def read_irq_balancing(text: str) -> IrqBalancing:
    """Read whether CPUs take the interrupts of the machine.

    Source:
        CRI-O, ``irq-load-balancing.crio.io``; ``housekeeping`` since its 1.34.

    >>> read_irq_balancing("true")
    <IrqBalancing.DISABLED: 'disable'>
    """
    if text in _OLD:
        return _OLD[text]
    try:
        return IrqBalancing(text)
    except ValueError:
        raise BadIsolation(text, "disable, housekeeping or enable") from None


def read_governor(text: str) -> str:
    """Read the name of a scaling governor; the host is not asked whether it exists."""
    if not _GOVERNOR.fullmatch(text):
        raise BadIsolation(text, "a scaling governor such as performance")
    return text


def read_wake_latency(text: str) -> str:
    """Read which idle states are allowed; see `read_cpu_request`."""
    try:
        found = read_cpu_request(NO_CPUS, "", text).wake_latency
    except BadCpuClassRequest:
        found = ""
    if not found:
        raise BadIsolation(text, "enable, disable or max_latency:MICROSECONDS")
    return found
