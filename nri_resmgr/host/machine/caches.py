"""Reads caches from sysfs, each once even if several CPUs share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nri_resmgr.host.fields import (
    cache_size,
    cpu_mask,
    number,
    optional_cpus,
    optional_number,
    required,
)
from nri_resmgr.host.paths import CPU_ROOT
from nri_resmgr.host.tree import BadHostFile, MissingHostFile, Tree
from nri_resmgr.log import Logger
from nri_resmgr.topology import Cache, CacheKind, cache_order
from nri_resmgr.values import NO_CPUS, CpuSet

_INDEX: Final = "index"

log = Logger(__name__)


def read_caches(tree: Tree, online: CpuSet) -> tuple[Cache, ...]:
    """Read the caches of the online CPUs.

    A cache is read from the folder of its lowest CPU; folders of other CPUs are read
    only for caches that are not known yet, which saves most of the files. If no CPU
    has caches, that is logged.

    Raises:
        MissingHostFile: A cache lacks its level, type or sharing list.
        BadHostFile: A file has an invalid value.

    Source:
        Linux, Documentation/ABI/testing/sysfs-devices-system-cpu,
        "cache/index*/".
    """
    covered: dict[str, CpuSet] = {}
    found: list[Cache] = []
    for cpu in online:
        folder = f"{CPU_ROOT}/cpu{cpu}/cache"
        for index in _indexes(tree, folder, covered, cpu):
            cache = _read_cache(tree, f"{folder}/{index}", cpu, online)
            covered[index] = covered.get(index, NO_CPUS) | cache.cpus
            found.append(cache)
    if not found:
        log.warning("topology.fallback", missing="cache", used="no caches")
    return _without_repeats(found)


def _without_repeats(found: Sequence[Cache]) -> tuple[Cache, ...]:
    """Remove duplicates: CPUs may list the same cache under different indexes."""
    seen: dict[tuple[int, CacheKind], CpuSet] = {}
    kept: dict[tuple[int, CacheKind, CpuSet], Cache] = {}
    for cache in found:
        key = (cache.level, cache.kind)
        others = seen.get(key, NO_CPUS)
        if (*key, cache.cpus) not in kept and cache.cpus & others:
            raise BadHostFile(
                f"{CPU_ROOT}/cpu{cache.cpus.first}/cache",
                f"level {cache.level} is shared by {cache.cpus}, "
                f"but CPU {cache.cpus & others} shares another one",
            )
        seen[key] = others | cache.cpus
        kept.setdefault((*key, cache.cpus), cache)
    return tuple(sorted(kept.values(), key=cache_order))


def _indexes(
    tree: Tree, folder: str, covered: dict[str, CpuSet], cpu: int
) -> tuple[str, ...]:
    if covered and all(cpu in sharers for sharers in covered.values()):
        return ()
    return tuple(
        name
        for name in tree.names(folder)
        if name.startswith(_INDEX) and cpu not in covered.get(name, NO_CPUS)
    )


def _sharers(tree: Tree, folder: str) -> tuple[str, CpuSet]:
    """Read which CPUs share a cache; return the file, too."""
    mask, path = f"{folder}/shared_cpu_map", f"{folder}/shared_cpu_list"
    listed = optional_cpus(tree, path)
    if listed is None and tree.read(mask) is not None:  # as some kernels have it
        return mask, cpu_mask(tree, mask)
    if listed is None:
        raise MissingHostFile(path)
    return path, listed


def _read_cache(tree: Tree, folder: str, cpu: int, online: CpuSet) -> Cache:
    kind = required(tree, f"{folder}/type")
    if kind not in set(CacheKind):
        raise BadHostFile(f"{folder}/type", f"not a type of cache: {kind!r}")
    path, sharers = _sharers(tree, folder)
    if cpu not in sharers:
        raise BadHostFile(path, f"CPU {cpu} is missing in the list of its own cache")
    return Cache(
        level=number(tree, f"{folder}/level"),
        kind=CacheKind(kind),
        id=optional_number(tree, f"{folder}/id"),
        cpus=sharers & online,
        size=cache_size(tree, f"{folder}/size"),
    )
