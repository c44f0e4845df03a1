"""Classes of a configuration on the devices of a machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from nri_resmgr.classes.blockio.block_class import BlockIoClass, DeviceLimits
from nri_resmgr.classes.blockio.values import (
    BlockDevice,
    BlockIoConfig,
    DeviceNumber,
    Found,
    Limits,
    Notice,
    Oddity,
    ParameterSet,
)


def patterns_of(config: BlockIoConfig) -> tuple[str, ...]:
    """Return the patterns of all classes, each once, in their order."""
    found = (
        pattern for sets in config.values() for one in sets for pattern in one.patterns
    )
    return tuple(dict.fromkeys(found))


def resolve(
    config: BlockIoConfig, devices: Mapping[str, Found]
) -> dict[str, BlockIoClass]:
    """Work out what each class means on a machine.

    Args:
        config: The classes that an operator wrote.
        devices: What each of `patterns_of` names; a pattern that is not there names
            nothing.

    Returns:
        All classes. One whose devices are missing is there with fewer of them, and
        with a notice.

    Source:
        goresctrl, ``pkg/blockio``: sets count in their order, parameter by
        parameter and device by device.
    """
    return {name: _resolve(name, sets, devices) for name, sets in config.items()}


def _resolve(
    name: str, sets: Iterable[ParameterSet], devices: Mapping[str, Found]
) -> BlockIoClass:
    weight: int | None = None
    limits: dict[DeviceNumber, DeviceLimits] = {}
    notices: dict[Notice, None] = {}
    for one in sets:
        if not one.patterns and one.limits.weight is not None:
            weight = one.limits.weight
        for pattern in one.patterns:
            found = devices.get(pattern, Found())
            notices |= dict.fromkeys(found.notices)
            for device in found.devices:
                earlier = limits.get(device.number)
                limits[device.number] = _limited(device, one.limits, earlier)
    by_number = sorted(limits.values(), key=attrgetter("order"))
    notices |= dict.fromkeys(_weightless(by_number))
    return BlockIoClass(name, weight, tuple(by_number), tuple(notices))


def _limited(
    device: BlockDevice, limits: Limits, earlier: DeviceLimits | None
) -> DeviceLimits:
    return DeviceLimits(device, limits.over(earlier.limits) if earlier else limits)


def _weightless(limits: Iterable[DeviceLimits]) -> Iterable[Notice]:
    for one in limits:
        if one.limits.weight is not None and not one.device.may_weigh:
            shown = one.device.name or str(one.device.number)
            why = (
                f"I/O scheduler {one.device.scheduler} takes no weights, bfq would: "
                "the weight is left out"
            )
            yield Notice(Oddity.NO_WEIGHTS, shown, why)
