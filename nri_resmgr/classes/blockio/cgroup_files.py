"""Files of the io controller (cgroup v2) and of blkio (v1), and their contents."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from nri_resmgr.classes.unified import Files

Settings: TypeAlias = dict[tuple[str, str, str], str]
"""File, device and key to a value. The device is empty for a value of the whole file,
the key unless a line has several values."""

# The kernel stores requests per second in 32 bits; with all of them set it is "max".
# Source: Linux, block/blk-throttle.c, `tg_set_limit`, `tg_set_conf`.
NO_LIMIT_IOPS: Final = (1 << 32) - 1

_MAX_FILE: Final = "io.max"
_V1_THROTTLES: Final = {
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
}

_CLEARED_BY_ZERO: Final = frozenset((*_V1_THROTTLES.values(), "blkio.weight_device"))

# Initial values in the kernel. Source: Linux, block/blk-cgroup.h, bfq-iosched.h, and
# for blkio.weight Documentation/cgroup-v1/blkio-controller.txt of Linux 4.20.
_DEFAULT_WEIGHTS: Final = {
    "io.weight": "100",
    "io.bfq.weight": "100",
    "blkio.bfq.weight": "100",
    "blkio.weight": "500",
}


# The usual names of the files for a weight, weights of devices, and throttles.
V2_NAMES: Final = ("io.weight", "io.bfq.weight", _MAX_FILE)
V1_NAMES: Final = ("blkio.weight", "blkio.weight_device", _V1_THROTTLES["rbps"])


class Features(msgspec.Struct, frozen=True):
    """The files that a container's cgroup has.

    Attributes:
        weight_file: The file of the weight on all devices; empty for none.
        device_weight_file: The file of weights of single devices; empty for none.
    """

    is_v2: bool
    weight_file: str = ""
    device_weight_file: str = ""
    has_throttles: bool = True

    @classmethod
    def of(cls, present: frozenset[str], *, is_v2: bool) -> Features:
        """Choose among the files that are *present*; bfq's weight takes precedence."""
        group = "io" if is_v2 else "blkio"
        weights = (f"{group}.bfq.weight", f"{group}.weight")
        weight = next((name for name in weights if name in present), "")
        # io.weight accepts devices only if io.cost is on for them.
        device = weights[0] if is_v2 else f"{weight}_device"
        throttle = _MAX_FILE if is_v2 else _V1_THROTTLES["rbps"]
        return cls(
            is_v2, weight, device if device in present else "", throttle in present
        )

    def throttle(self, key: str, device: str) -> tuple[str, str, str]:
        """Return the place in `Settings` of a key of ``io.max``."""
        if self.is_v2:
            return (_MAX_FILE, device, key)
        return (_V1_THROTTLES[key], device, "")

    def weight_text(self, weight: int) -> str:
        """Return a weight of 10 to 1000 on the scale of the file.

        Source:
            The table of opencontainers/cgroups, ``ConvertBlkIOToIOWeightValue``.
        """
        if self.weight_file == "io.weight":
            return str(1 + (weight - 10) * 9999 // 990)
        return str(weight)

    def cleared(self, place: tuple[str, str, str]) -> str:
        """Return the text that resets a value.

        Source:
            Linux, block/blk-throttle.c: version 2 accepts no 0 and version 1 no
            "max". block/bfq-cgroup.c, ``bfq_io_set_device_weight``: "default", and
            no 0. The old blkio.weight_device is documented with 0.
        """
        file, device, _ = place
        if file == _MAX_FILE:
            return "max"
        if file in _CLEARED_BY_ZERO:
            return "0"
        return "default" if device else _DEFAULT_WEIGHTS[file]


def render(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return settings as lines, those without a device first, then by device."""
    lines: dict[tuple[str, str], list[str]] = {}
    for (file, device, key), text in settings.items():
        word = f"{key}={text}" if key else text
        lines.setdefault((file, device), [device] if device else []).append(word)
    found: dict[str, tuple[str, ...]] = {}
    for file, device in sorted(lines, key=_order):
        found[file] = (*found.get(file, ()), " ".join(lines[file, device]))
    return found


def settings_of(files: Files) -> Settings:
    """Read lines that `render` wrote.

    >>> settings_of({"io.max": ("8:0 rbps=1 wbps=2",), "io.weight": ("405",)})
    {('io.max', '8:0', 'rbps'): '1', ('io.max', '8:0', 'wbps'): '2', \
('io.weight', '', ''): '405'}
    """
    found: Settings = {}
    for file, lines in files.items():
        for line in lines:
            device, _, rest = (
                line.rpartition(" ") if "=" not in line else line.partition(" ")
            )
            if "=" not in rest:
                found[file, device, ""] = rest
                continue
            for word in rest.split():
                key, _, text = word.partition("=")
                found[file, device, key] = text
    return found


def changed_files(before: Files, after: Files, features: Features) -> Files:
    """Return the lines that change a cgroup from *before* to *after*.

    What *after* does not set is reset to the kernel's default.
    """
    old, new = settings_of(before), settings_of(after)
    gone = {key: features.cleared(key) for key in old if key not in new}
    return render(
        gone | {key: text for key, text in new.items() if old.get(key) != text}
    )


def _order(line: tuple[str, str]) -> tuple[str, tuple[int, ...]]:
    file, device = line
    return file, tuple(int(part) for part in device.split(":")) if device else ()
