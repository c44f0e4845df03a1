"""Block I/O classes resolved on the devices of a machine, as OCI values and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress
from typing import Final

import msgspec

from nri_resmgr.classes.blockio.cgroup_files import (
    NO_LIMIT_IOPS,
    V1_NAMES,
    V2_NAMES,
    Features,
    Settings,
    changed_files,
    render,
)
from nri_resmgr.classes.blockio.values import (
    BlockDevice,
    BlockIoConfig,
    DeviceNumber,
    IoLimits,
    MatchedDevices,
    Notice,
    NoticeKind,
    ParameterSet,
)
from nri_resmgr.classes.unified import Files, Unified, as_unified

# Field of `IoLimits` to the OCI runtime spec's list of rates, and to a key of `io.max`.
_THROTTLES: Final = {
    "read_bps": ("throttleReadBpsDevice", "rbps"),
    "write_bps": ("throttleWriteBpsDevice", "wbps"),
    "read_iops": ("throttleReadIOPSDevice", "riops"),
    "write_iops": ("throttleWriteIOPSDevice", "wiops"),
}


class DeviceLimits(msgspec.Struct, frozen=True):
    """The parameters of a class for one device."""

    device: BlockDevice
    limits: IoLimits

    @property
    def weight(self) -> int | None:
        """The weight; None if the device takes none."""
        return self.limits.weight if self.device.may_weigh else None

    def throttles(self) -> dict[str, int]:
        """Return rates by the keys of ``io.max``, without those that limit nothing."""
        return {key: rate for _, key, rate in self.rates()}

    def rates(self) -> list[tuple[str, str, int]]:
        """Return rates, each with its names in OCI's spec and in ``io.max``."""
        named = ((names, getattr(self.limits, f)) for f, names in _THROTTLES.items())
        return [
            (oci, key, rate)
            for (oci, key), rate in named
            if rate and not (key.endswith("iops") and rate >= NO_LIMIT_IOPS)
        ]


class BlockIoClass(msgspec.Struct, frozen=True):
    """One class, resolved.

    Attributes:
        weight: On all devices, 10 to 1000; None for the kernel's default.
        devices: Parameters of devices, sorted by number, each device once.
        notices: Differences from what the class asks for.
    """

    name: str
    weight: int | None = None
    devices: tuple[DeviceLimits, ...] = ()
    notices: tuple[Notice, ...] = ()

    def oci(self) -> dict[str, object]:
        """Return ``linux.resources.blockIO`` of the OCI runtime spec.

        A rate of 0 is left out: at creation there is no limit to remove, and the
        kernel might refuse what runtimes would write.
        """
        found: dict[str, object] = {}
        if self.weight is not None:
            found["weight"] = self.weight
        lists: dict[str, list[dict[str, int]]] = {}
        for one in self.devices:
            number = {"major": one.device.number.major}
            number["minor"] = one.device.number.minor
            if one.weight is not None:
                row = number | {"weight": one.weight}
                lists.setdefault("weightDevice", []).append(row)
            for name, _, rate in one.rates():
                lists.setdefault(name, []).append(number | {"rate": rate})
        return found | lists

    def settings(self, features: Features) -> Settings:
        """Return the values of a cgroup of this class."""
        found: Settings = {}
        if self.weight is not None and features.weight_file:
            found[features.weight_file, "", ""] = features.weight_text(self.weight)
        for one in self.devices:
            number = str(one.device.number)
            if one.weight is not None and features.device_weight_file:
                found[features.device_weight_file, number, ""] = str(one.weight)
            if not features.has_throttles:
                continue
            for key, rate in one.throttles().items():
                found[features.throttle(key, number)] = str(rate)
        return found

    def files(self, features: Features) -> Files:
        """Return the files of a new cgroup; each line is a write of its own."""
        return render(self.settings(features))

    def unified(self, features: Features, *, by_line: bool = False) -> Unified:
        """Return the class as ``linux.resources.unified``.

        Cgroup v1 has no unified values. `as_unified` explains *by_line*.
        """
        files = self.files(features)
        if not features.is_v2:
            return Unified({}, files)
        return as_unified(files, by_line=by_line)

    def left_out(self, features: Features) -> tuple[Notice, ...]:
        """Return what the class asks for and the host has no file for."""
        lacks = (
            self.weight is not None and not features.weight_file,
            not features.device_weight_file
            and any(one.weight is not None for one in self.devices),
            not features.has_throttles and any(one.throttles() for one in self.devices),
        )
        why = "cgroups of this host have no such file, so it is not set"
        names = compress(V2_NAMES if features.is_v2 else V1_NAMES, lacks)
        return tuple(Notice(NoticeKind.NO_FILE, name, why) for name in names)


def changes(
    old: BlockIoClass | None, new: BlockIoClass | None, features: Features
) -> Files:
    """Return the lines to write for a running container that changes its class.

    What *new* does not set is reset to the kernel's default.
    """
    before = old.files(features) if old else {}
    return changed_files(before, new.files(features) if new else {}, features)


def patterns_of(config: BlockIoConfig) -> tuple[str, ...]:
    """Return the patterns of all classes, each once, in the order of the classes."""
    found = (
        pattern for sets in config.values() for one in sets for pattern in one.patterns
    )
    return tuple(dict.fromkeys(found))


def resolve(
    config: BlockIoConfig, devices: Mapping[str, MatchedDevices]
) -> dict[str, BlockIoClass]:
    """Resolve classes on the devices of a machine.

    Missing devices are left out, with a notice.

    Source:
        goresctrl, ``pkg/blockio``: sets apply in their order, parameter by parameter
        and device by device.
    """
    return {name: _resolve(name, sets, devices) for name, sets in config.items()}


def _resolve(
    name: str, sets: Iterable[ParameterSet], devices: Mapping[str, MatchedDevices]
) -> BlockIoClass:
    weight: int | None = None
    limits: dict[DeviceNumber, DeviceLimits] = {}
    notices: dict[Notice, None] = {}
    for one in sets:
        if not one.patterns and one.limits.weight is not None:
            weight = one.limits.weight
        for pattern in one.patterns:
            found = devices.get(pattern, MatchedDevices())
            notices |= dict.fromkeys(found.notices)
            for device in found.devices:
                earlier = limits.get(device.number)
                wanted = one.limits.over(earlier.limits) if earlier else one.limits
                limits[device.number] = DeviceLimits(device, wanted)
    by_number = [limits[number] for number in sorted(limits)]
    notices |= dict.fromkeys(_weightless(by_number))
    return BlockIoClass(name, weight, tuple(by_number), tuple(notices))


def _weightless(limits: Iterable[DeviceLimits]) -> Iterable[Notice]:
    for one in limits:
        if one.limits.weight is not None and not one.device.may_weigh:
            shown = one.device.name or str(one.device.number)
            why = (
                f"I/O scheduler {one.device.scheduler} takes no weights, bfq would: "
                "the weight is left out"
            )
            yield Notice(NoticeKind.NO_WEIGHTS, shown, why)
