"""Memory QoS: the share of its memory limit that a container keeps out of swap."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.memory.errors import (
    BadMemoryAnnotation,
    MemoryFileNotAllowed,
    NoMemoryLimit,
    UnknownMemoryClass,
)
from nri_resmgr.values import Bytes
from nri_resmgr.values.annotations import Annotation

QOS_SUFFIX: Final = ".memory-qos.nri.io"
"""End of the keys, after ``class`` or a file of cgroup v2. With the suffix ``/NAME`` an
annotation is about the container of that name, without it about all containers."""

WHOLE: Final = 1_000_000
"""All of a limit, in millionths."""

_CLASS: Final = "class"
_HIGH: Final = "memory.high"
_SWAP: Final = "memory.swap.max"

# Linux, lib/cmdline.c, `memparse`; "max" is of the memory controller's files.
_AMOUNT: Final = re.compile(r"(?:\d+|0[xX][0-9a-fA-F]+)[kKmMgGtTpPeE]?|max", re.ASCII)
_AMOUNTS: Final = frozenset(
    f"memory.{name}"
    for name in ("min", "low", "high", "max", "swap.high", "swap.max", "zswap.max")
)
_FLAGS: Final = frozenset({"memory.oom.group", "memory.zswap.writeback"})


class MemoryQosClass(msgspec.Struct, frozen=True):
    """A class of sharing memory with swap.

    Attributes:
        swapped: The part of the memory limit to swap, in millionths; 0 sets nothing.
    """

    swapped: int = 0


class MemoryQosConfig(msgspec.Struct, frozen=True):
    """The configuration.

    Attributes:
        files: Files of cgroup v2 that annotations may set.
    """

    classes: Mapping[str, MemoryQosClass]
    files: tuple[str, ...] = ()


class MemoryQosRequest(msgspec.Struct, frozen=True):
    """The request of annotations for a container."""

    class_name: str = ""
    files: tuple[tuple[str, Annotation], ...] = ()


def memory_qos_request(
    annotations: Mapping[str, str], container: str
) -> MemoryQosRequest:
    """Read the request of a pod's annotations for one of its containers.

    For each key the annotation of the container overrides that of the pod. An empty
    value asks for nothing, so a container can opt out.

    Source:
        nri-plugins, ``cmd/plugins/memory-qos``, where a container cannot opt out.
    """
    found: dict[str, Annotation] = {}
    for end in (QOS_SUFFIX, f"{QOS_SUFFIX}/{container}"):
        for key in sorted(annotations):
            if key.endswith(end) and (stem := key.removesuffix(end)):
                found[stem] = Annotation(key, annotations[key])
    asked = {stem: one for stem, one in found.items() if one.value}
    wanted = asked.pop(_CLASS, None)
    return MemoryQosRequest(
        wanted.value if wanted else "", tuple(sorted(asked.items()))
    )


def memory_qos_unified(
    request: MemoryQosRequest, config: MemoryQosConfig, limit: Bytes | None, title: str
) -> dict[str, str]:
    """Compute the files of cgroup v2 that a request sets.

    A *limit* of 0 or less is none.

    Returns:
        ``linux.resources.unified``: a class sets ``memory.high``, to the limit minus
        the part to swap, rounded down, and unlimited swap. Files that the request names
        override these.

    Raises:
        UnknownMemoryClass: The class does not exist.
        NoMemoryLimit: The class needs a limit, and there is none.
        MemoryFileNotAllowed: A file may not be set by annotations.
        BadMemoryAnnotation: The kernel would refuse a value.
    """
    written: dict[str, str] = {}
    for file, one in request.files:
        if file not in config.files:
            raise MemoryFileNotAllowed(title, file, config.files)
        written[file] = _checked(file, one)
    if not request.class_name:
        return written
    chosen = config.classes.get(request.class_name)
    if chosen is None:
        raise UnknownMemoryClass(
            title, "memory QoS", request.class_name, tuple(config.classes)
        )
    if not chosen.swapped:
        return written
    if limit is None or limit <= 0:
        share = f"{chosen.swapped * 100 / WHOLE:g}%"
        raise NoMemoryLimit(title, request.class_name, share)
    high = limit * (WHOLE - chosen.swapped) // WHOLE
    return {_HIGH: str(high), _SWAP: "max"} | written


def _checked(file: str, one: Annotation) -> str:
    text = one.value.strip()
    if file in _AMOUNTS and not _AMOUNT.fullmatch(text):
        accepted = f"is no value for {file}: bytes, also with K, M or G, or max"
        raise BadMemoryAnnotation(one.key, one.value, accepted)
    if file in _FLAGS and text not in ("0", "1"):
        accepted = f"is no value for {file}: 0 or 1"
        raise BadMemoryAnnotation(one.key, one.value, accepted)
    if not text or "\n" in text:
        raise BadMemoryAnnotation(one.key, one.value, "is not one line of text")
    return text
