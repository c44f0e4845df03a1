"""Parses and renders schemata files; errors have the kernel's messages."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from nri_resmgr.testing.resctrl.hardware import Hardware, Throttle, Ways

_U32: Final = (1 << 32) - 1

# One line: a resource, and its values by id of the cache or domain.
Line = tuple[str, dict[int, int]]


@dataclass(eq=False)
class KernelRefusal(Exception):
    """The kernel rejects an operation.

    Attributes:
        number: The errno.
        status: Text of ``last_cmd_status``.
    """

    number: int
    status: str = "ok"


def read_lines(text: str, hardware: Hardware) -> list[Line]:
    """Parse the text of one write.

    Raises:
        KernelRefusal: A line is invalid; no line may be applied.

    Source:
        Linux fs/resctrl/ctrlmondata.c: rdtgroup_schemata_write.
    """
    if not text.endswith("\n"):
        raise KernelRefusal(errno.EINVAL)
    return [_line(line, hardware) for line in text[:-1].split("\n")]


def show(values: dict[str, dict[int, int]], hardware: Hardware) -> str:
    """Render a schemata file as the kernel does: padded names and masks."""
    width = max(map(len, values), default=0)
    digits = max([3, *(len(f"{ways.mask:x}") for ways in hardware.caches.values())])
    lines = []
    for name, domains in values.items():
        form = f"0{digits}x" if name in hardware.caches else f"{digits}d"
        texts = (f"{key}={value:{form}}" for key, value in sorted(domains.items()))
        lines.append(f"{name:>{width}}:{';'.join(texts)}\n")
    return "".join(lines)


def is_valid_mask(mask: int, ways: Ways) -> bool:
    """Return whether the hardware accepts a mask."""
    try:
        _check_mask(mask, f"{mask:x}", ways)
    except KernelRefusal:
        return False
    return True


def _line(line: str, hardware: Hardware) -> Line:
    name, colon, rest = line.partition(":")
    name = name.strip()
    if not colon:
        raise KernelRefusal(errno.EINVAL, "Missing ':'")
    if not rest:
        raise KernelRefusal(errno.EINVAL, f"Missing '{name}' value")
    ways = hardware.caches.get(name)
    throttle = hardware.throttle if name == "MB" else None
    if ways is not None:
        return name, dict(_each(rest, ways.ids, partial(_mask, ways=ways)))
    if throttle is not None:
        read = partial(_bandwidth, throttle=throttle, in_mbps=hardware.in_mbps)
        return name, dict(_each(rest, hardware.domains, read))
    raise KernelRefusal(errno.EINVAL, f"Unknown or unsupported resource name '{name}'")


def _each(
    text: str, ids: tuple[int, ...], value_of: Callable[[str], int]
) -> Iterator[tuple[int, int]]:
    seen = set()
    for domain in text.split(";"):
        key, equals, value = (part.strip() for part in domain.partition("="))
        if not equals or not _is_number(key, 10):
            raise KernelRefusal(errno.EINVAL, "Missing '=' or non-numeric domain")
        if int(key) not in ids:
            raise KernelRefusal(errno.EINVAL)  # the kernel sets no message here, either
        if int(key) in seen:
            raise KernelRefusal(errno.EINVAL, f"Duplicate domain {int(key)}")
        seen.add(int(key))
        yield int(key), value_of(value)


def _mask(text: str, ways: Ways) -> int:
    if not _is_number(text, 16):
        raise KernelRefusal(errno.EINVAL, f"Non-hex character in the mask {text}")
    mask = int(text, 16)
    _check_mask(mask, text, ways)
    return mask


def _check_mask(mask: int, text: str, ways: Ways) -> None:
    """Refuse a mask that the hardware does not accept.

    Source:
        Linux fs/resctrl/ctrlmondata.c: cbm_validate.
    """
    if (ways.min_bits and not mask) or mask > ways.mask:
        raise KernelRefusal(errno.EINVAL, "Mask out of range")
    lowest = (mask & -mask).bit_length() - 1
    run = mask >> lowest if mask else 0
    if not ways.sparse and run & (run + 1):
        raise KernelRefusal(errno.EINVAL, f"The mask {text} has non-consecutive 1-bits")
    ones = (~run & (run + 1)).bit_length() - 1 if mask else 0
    if ones < ways.min_bits:
        raise KernelRefusal(
            errno.EINVAL, f"Need at least {ways.min_bits} bits in the mask"
        )


def _bandwidth(text: str, throttle: Throttle, *, in_mbps: bool) -> int:
    """Return a bandwidth as the kernel rounds it.

    Source:
        Linux fs/resctrl/ctrlmondata.c: bw_validate.
    """
    if not _is_number(text, 10) or int(text) > _U32:
        raise KernelRefusal(errno.EINVAL, f"Invalid MB value {text}")
    value = int(text)
    if in_mbps:
        return value
    if not throttle.minimum <= value <= throttle.maximum:
        limits = f"[{throttle.minimum},{throttle.maximum}]"
        raise KernelRefusal(errno.EINVAL, f"MB value {value} out of range {limits}")
    return math.ceil(value / throttle.step) * throttle.step


def _is_number(text: str, base: int) -> bool:
    try:
        int(text, base)
    except ValueError:
        return False
    return text.isalnum()
