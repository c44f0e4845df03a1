"""Reads the capabilities of resctrl from its ``info`` folder."""

from __future__ import annotations

import re
from typing import Final

from nri_resmgr.classes.rdt.capabilities import (
    AMD_MAXIMUM,
    MBPS_MAXIMUM,
    PERCENT_MAXIMUM,
    Bandwidth,
    BandwidthMode,
    Capabilities,
    RdtCache,
)
from nri_resmgr.host.resctrl.files import ResctrlFiles
from nri_resmgr.host.resctrl.groups import names_in, read_if_there, read_schemata
from nri_resmgr.host.resctrl.schemata import Schemata, cache_of
from nri_resmgr.host.tree import BadHostFile, MissingHostFile

_BANDWIDTH: Final = "MB"

_VENDOR: Final = re.compile(r"^vendor_id\s*:\s*(\S+)", re.MULTILINE)
_AMD: Final = ("AuthenticAMD", "HygonGenuine")


def bandwidth_mode(cpuinfo: str, *, in_mbps: bool) -> BandwidthMode:
    r"""Determine the unit of ``MB`` lines, which the kernel does not report.

    Source:
        Linux resctrl.rst, "Memory bandwidth Allocation".

    >>> bandwidth_mode("vendor_id\t: AuthenticAMD\n", in_mbps=False)
    <BandwidthMode.AMD: 'amd'>
    """
    if in_mbps:
        return BandwidthMode.MBPS
    vendor = _VENDOR.search(cpuinfo)
    is_amd = vendor is not None and vendor[1] in _AMD
    return BandwidthMode.AMD if is_amd else BandwidthMode.PERCENT


def read_capabilities(files: ResctrlFiles, mode: BandwidthMode) -> Capabilities:
    """Read what can be allocated.

    Raises:
        MissingHostFile: A file of a resource is missing.
        BadHostFile: A file has an invalid value.
        UnreadableHostFile: A file cannot be read.
    """
    folders = names_in(files, "info")
    schemata = read_schemata(files, "") or {}
    root = {name: tuple(sorted(values)) for name, values in schemata.items()}
    caches = {
        name: _cache(files, name, root.get(name, ()))
        for name in folders
        if cache_of(name)
    }
    has_bandwidth = _BANDWIDTH in folders
    return Capabilities(
        caches=caches,
        bandwidth=_bandwidth(files, mode, root) if has_bandwidth else None,
        io_alloc=any(_text(files, f"{name}/io_alloc") == "enabled" for name in caches),
    )


def whole_of(capabilities: Capabilities) -> Schemata:
    """Return schemata with the whole of every resource."""
    whole = {
        name: dict.fromkeys(cache.ids, cache.mask)
        for name, cache in capabilities.caches.items()
    }
    bandwidth = capabilities.bandwidth
    if bandwidth is not None:
        whole[_BANDWIDTH] = dict.fromkeys(bandwidth.ids, bandwidth.maximum)
    return whole


def _cache(files: ResctrlFiles, name: str, ids: tuple[int, ...]) -> RdtCache:
    return RdtCache(
        mask=_number(files, f"{name}/cbm_mask", 16),
        min_bits=_number(files, f"{name}/min_cbm_bits"),
        # Kernels without the file reject masks with holes.
        sparse=_text(files, f"{name}/sparse_masks") == "1",
        closids=_number(files, f"{name}/num_closids"),
        ids=ids,
    )


def _bandwidth(
    files: ResctrlFiles, mode: BandwidthMode, ids: dict[str, tuple[int, ...]]
) -> Bandwidth:
    minimum = _number(files, f"{_BANDWIDTH}/min_bandwidth")
    step = _number(files, f"{_BANDWIDTH}/bandwidth_gran")
    maximum = PERCENT_MAXIMUM
    match mode:
        case BandwidthMode.MBPS:  # the files are in percent even so
            minimum, step, maximum = 0, 1, MBPS_MAXIMUM
        case BandwidthMode.AMD:
            maximum = AMD_MAXIMUM
    closids = _number(files, f"{_BANDWIDTH}/num_closids")
    return Bandwidth(mode, minimum, step, maximum, closids, ids.get(_BANDWIDTH, ()))


def _text(files: ResctrlFiles, name: str) -> str:
    return (read_if_there(files, f"info/{name}") or "").strip()


def _number(files: ResctrlFiles, name: str, base: int = 10) -> int:
    path = f"{files.root}/info/{name}"
    text = read_if_there(files, f"info/{name}")
    if text is None:
        raise MissingHostFile(path)
    try:
        return int(text, base)
    except ValueError as error:
        raise BadHostFile(path, f"not a number: {text.strip()!r:.40}") from error
