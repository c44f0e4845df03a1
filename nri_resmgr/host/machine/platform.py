"""Reads which controls the kernel has: resctrl, uncore frequencies, Speed Select."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from nri_resmgr.host.fields import frequency, number, optional_number, required
from nri_resmgr.host.mounts import find_resctrl_mount
from nri_resmgr.host.paths import CPU_ROOT, SST_DEVICE
from nri_resmgr.host.tree import BadHostFile, Tree
from nri_resmgr.topology import Rdt, RdtResource, Uncore

UNCORE_ROOT: Final = f"{CPU_ROOT}/intel_uncore_frequency"

_DIE: Final = re.compile(r"package_(\d+)_die_(\d+)", re.ASCII)
_CACHE: Final = re.compile(r"L[23](?:CODE|DATA)?", re.ASCII)
_BANDWIDTH: Final = frozenset({"MB", "SMBA"})


def has_speed_select(tree: Tree) -> bool:
    """Return whether the driver of Intel Speed Select is loaded."""
    return tree.target(SST_DEVICE) is not None


def read_uncore(tree: Tree) -> tuple[Uncore, ...]:
    """Read the uncore frequency domains by name; none without the driver.

    Raises:
        BadHostFile: A file has an invalid value.

    Source:
        Linux, Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst.
    """
    return tuple(
        _read_domain(tree, name)
        for name in tree.names(UNCORE_ROOT)
        if _DIE.fullmatch(name) or name.startswith("uncore")
    )


def _read_domain(tree: Tree, name: str) -> Uncore:
    folder = f"{UNCORE_ROOT}/{name}"
    match = _DIE.fullmatch(name)
    return Uncore(
        name=name,
        package=int(match[1]) if match else number(tree, f"{folder}/package_id"),
        die=int(match[2]) if match else None,
        domain=None if match else optional_number(tree, f"{folder}/domain_id"),
        min=frequency(tree, f"{folder}/initial_min_freq_khz"),
        max=frequency(tree, f"{folder}/initial_max_freq_khz"),
    )


def read_rdt(tree: Tree) -> Rdt | None:
    """Read the capabilities of resctrl; None where it is not mounted.

    Raises:
        MissingHostFile: resctrl lacks a file of a resource.
        BadHostFile: A file has an invalid value.

    Source:
        Linux, Documentation/filesystems/resctrl.rst, "Info directory".
    """
    if (mount := find_resctrl_mount(tree)) is None:
        return None
    info = f"{mount.path}/info"
    features = tree.read(f"{info}/L3_MON/mon_features") or ""
    return Rdt(
        mount=mount.path,
        options=mount.options,
        resources=tuple(_read_resources(tree, info)),
        rmids=optional_number(tree, f"{info}/L3_MON/num_rmids") or 0,
        features=tuple(features.split()),
    )


def _read_resources(tree: Tree, info: str) -> Iterator[RdtResource]:
    for name in tree.names(info):
        folder = f"{info}/{name}"
        if _CACHE.fullmatch(name):
            yield RdtResource(
                name,
                closids=number(tree, f"{folder}/num_closids"),
                mask=_read_mask(tree, f"{folder}/cbm_mask"),
                min_bits=number(tree, f"{folder}/min_cbm_bits"),
                sparse=bool(optional_number(tree, f"{folder}/sparse_masks")),
            )
        elif name in _BANDWIDTH:
            yield RdtResource(
                name,
                closids=number(tree, f"{folder}/num_closids"),
                min_percent=number(tree, f"{folder}/min_bandwidth"),
                step_percent=number(tree, f"{folder}/bandwidth_gran"),
            )


def _read_mask(tree: Tree, path: str) -> int:
    text = required(tree, path)
    try:
        return int(text, 16)
    except ValueError:
        raise BadHostFile(path, f"not a hexadecimal mask: {text!r}") from None
