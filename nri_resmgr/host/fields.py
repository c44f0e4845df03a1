"""Reads host files as numbers, lists and sizes.

All functions raise `BadHostFile` for a file of another form. Those that say nothing
else about a missing file raise `MissingHostFile`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from nri_resmgr.host.tree import (
    BadHostFile,
    MissingHostFile,
    Tree,
    UnreadableHostFile,
)
from nri_resmgr.values import (
    BadListFormat,
    Bytes,
    CpuSet,
    KiloHertz,
    NodeSet,
)

_MASK: Final = re.compile(r"[0-9a-f]{1,8}(?:,[0-9a-f]{8})*", re.ASCII)
_SIZE: Final = re.compile(r"(\d{1,18})([KMG])", re.ASCII)
_SIZE_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_TOTAL: Final = re.compile(r"\bMemTotal:\s+(\d{1,18}) kB$", re.ASCII | re.MULTILINE)


# Containers of a shared pool have the same texts, and most texts do not change between
# two verification rounds.
_cpus_of: Final = lru_cache(maxsize=4096)(CpuSet.parse)
_nodes_of: Final = lru_cache(maxsize=1024)(NodeSet.parse)


def text_or_nothing(tree: Tree, path: str) -> str:
    """Return the text of a file; empty if it is missing or cannot be read."""
    try:
        return tree.read(path) or ""
    except UnreadableHostFile:
        return ""


def required(tree: Tree, path: str) -> str:
    """Read a required file."""
    text = tree.read(path)
    if text is None:
        raise MissingHostFile(path)
    return text


def optional_number(tree: Tree, path: str) -> int | None:
    """Read a decimal number; None without the file."""
    text = tree.read(path)
    return None if text is None else number_in(path, text)


def number(tree: Tree, path: str) -> int:
    """Read a decimal number from a required file."""
    return number_in(path, required(tree, path))


def number_in(path: str, text: str) -> int:
    """Parse *text* of the file at *path* as a decimal number."""
    try:
        return int(text)
    except ValueError:
        raise BadHostFile(path, f"not a number: {text!r}") from None


def optional_cpus(tree: Tree, path: str) -> CpuSet | None:
    """Read a list of CPUs; None without the file."""
    text = tree.read(path)
    try:
        return None if text is None else _cpus_of(text)
    except BadListFormat as error:
        raise BadHostFile(path, str(error)) from error


def cpus(tree: Tree, path: str) -> CpuSet:
    """Read a list of CPUs from a required file."""
    found = optional_cpus(tree, path)
    if found is None:
        raise MissingHostFile(path)
    return found


def cpu_mask(tree: Tree, path: str) -> CpuSet:
    """Read CPUs from a required file with a mask, ``"3,00000000"``.

    Source:
        Linux, lib/vsprintf.c, ``bitmap_string``: words of 32 bits, the highest first.
    """
    text = required(tree, path)
    if not _MASK.fullmatch(text):
        raise BadHostFile(path, f"not a mask of CPUs: {text!r}")
    return CpuSet(int(text.replace(",", ""), 16))


def optional_nodes(tree: Tree, path: str) -> NodeSet | None:
    """Read a list of nodes; None without the file."""
    text = tree.read(path)
    try:
        return None if text is None else _nodes_of(text)
    except BadListFormat as error:
        raise BadHostFile(path, str(error)) from error


def cache_size(tree: Tree, path: str) -> Bytes:
    """Read a cache's size, ``"48K"``; 0 without the file."""
    text = tree.read(path)
    if text is None:
        return Bytes(0)
    match = _SIZE.fullmatch(text)
    if match is None:
        raise BadHostFile(path, f"not a size: {text!r}")
    return Bytes(int(match[1]) * _SIZE_UNITS[match[2]])


def frequency(tree: Tree, path: str) -> KiloHertz | None:
    """Read a frequency; None without the file or where its value is 0."""
    found = optional_number(tree, path)
    return KiloHertz(found) if found else None


def memory_total(tree: Tree, path: str) -> Bytes:
    """Read MemTotal of a ``meminfo`` file, the machine's or a node's."""
    match = _TOTAL.search(required(tree, path))
    if match is None:
        raise BadHostFile(path, "no line 'MemTotal: ... kB'")
    return Bytes(int(match[1]) << 10)
