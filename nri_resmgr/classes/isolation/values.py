"""Readers of CRI-O's isolation annotations; each refusal says what is accepted.

CRI-O ignores some unknown words. Here they are mistakes: otherwise a typing error would
leave a container without isolation, unnoticed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nri_resmgr.classes.isolation.requests import IrqBalancing
from nri_resmgr.values import InputError

# Accepted by CRI-O before it had these words.
_OLD: Final = {"true": IrqBalancing.DISABLED, "false": IrqBalancing.ENABLED}

_GOVERNOR: Final = re.compile(r"[a-z][a-z_]{0,14}", re.ASCII)  # the kernel has 16 bytes
_SHOWN: Final = 80

# In the kernel's form: no limit of the wake-up latency, and no latency at all.
_ANY, _NONE = "0", "n/a"

_LIMIT: Final = "max_latency:"
_MOST: Final = (1 << 31) - 1  # the kernel has 32 bits with a sign for it


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
    """Read which idle states are allowed, as `CpuClass.wake_latency`.

    ``enable`` allows all, ``disable`` none but polling, and ``max_latency:N`` those
    from which a CPU wakes in N microseconds.

    Source:
        CRI-O, high-performance hooks; Linux,
        Documentation/ABI/testing/sysfs-devices-power, pm_qos_resume_latency_us.

    >>> read_wake_latency("max_latency:10"), read_wake_latency("enable")
    ('10', '0')
    """
    number = text.removeprefix(_LIMIT)
    match text:
        case "enable":
            return _ANY
        case "disable":
            return _NONE
        case _ if number != text and number.isascii() and number.isdecimal():
            if (limit := int(number)) <= _MOST:
                # To the kernel 0 means no limit; in an annotation it means the lowest.
                return str(limit) if limit else _NONE
    raise BadIsolation(text, f"enable, disable or {_LIMIT}MICROSECONDS")
