"""Finds block devices by path patterns, and the block I/O files of cgroups."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nri_resmgr.classes.blockio import (
    BlockDevice,
    DeviceNumber,
    Features,
    MatchedDevices,
    Notice,
    NoticeKind,
)
from nri_resmgr.host.tree import Tree, UnreadableHostFile
from nri_resmgr.values.globs import glob_pattern

_BY_NUMBER: Final = "/sys/dev/block"
_MAGIC: Final = re.compile(r"[*?\[]")
_NUMBER: Final = re.compile(r"(\d+):(\d+)", re.ASCII)

# Limits of the search for a cgroup with the controller.
_LEVELS: Final = 2
_MOST_FOLDERS: Final = 500
_MOST_LINKS: Final = 40  # the kernel's own limit, MAXSYMLINKS


def find_block_devices(
    tree: Tree, patterns: Iterable[str]
) -> dict[str, MatchedDevices]:
    """Find the devices that match patterns, by pattern.

    Links are followed below the host's root. A partition is replaced by its disk: the
    kernel throttles whole disks only. Other files are skipped, with a notice.

    Patterns are absolute paths with Go's globs: a star does not match a slash, and
    matches leading dots.

    Source:
        Go, path/filepath, ``Glob``. Linux, block/blk-cgroup.c, ``blkg_conf_prep``:
        no partitions.
    """
    return {pattern: _find(tree, pattern) for pattern in patterns}


def find_features(tree: Tree, top: str, *, is_v2: bool) -> Features:
    """Find the block I/O files that a new container's cgroup will have.

    All cgroups with the controller have the same files, so any of them is read. If none
    has it yet, the runtime will enable it for the container; then it is only known that
    devices can be throttled.

    *top* is the root of the hierarchy: ``/sys/fs/cgroup`` or ``/sys/fs/cgroup/blkio``.

    Raises:
        UnreadableHostFile: A folder cannot be read.
    """
    mark = "io.stat" if is_v2 else "cgroup.procs"
    level = [top]
    for _ in range(_LEVELS):
        level = [f"{folder}/{name}" for folder in level for name in tree.names(folder)]
        for folder in level[:_MOST_FOLDERS]:
            present = frozenset(tree.names(folder))  # none, if it is a file
            if mark in present:
                return Features.of(present, is_v2=is_v2)
    if not is_v2:
        return Features.of(frozenset(tree.names(top)), is_v2=False)
    controllers = (tree.read(f"{top}/cgroup.controllers") or "").split()
    return Features(is_v2=True, has_throttles="io" in controllers)


def _find(tree: Tree, pattern: str) -> MatchedDevices:
    devices: dict[DeviceNumber, BlockDevice] = {}
    notices: list[Notice] = []
    try:
        paths = _glob(tree, pattern)
        if not paths:
            notices.append(Notice(NoticeKind.NO_MATCH, pattern, "matches no file"))
        for path in paths:
            number = _number_of(tree, path)
            if number is None:
                why = "is not a block device, skipped"
                notices.append(Notice(NoticeKind.NO_BLOCK_DEVICE, path, why))
                continue
            device = _describe(tree, number)
            devices[device.number] = device
            if device.number != number:
                why = f"is a partition, the class applies to the disk {device.name}"
                notices.append(Notice(NoticeKind.PARTITION, path, why))
    except UnreadableHostFile as error:
        notices.append(Notice(NoticeKind.UNREADABLE, pattern, str(error)))
    return MatchedDevices(tuple(devices.values()), tuple(notices))


def _glob(tree: Tree, pattern: str) -> list[str]:
    paths = [""]
    for part in pattern.strip("/").split("/"):
        if _MAGIC.search(part) is None:
            paths = [f"{path}/{part}" for path in paths]
            continue
        match = re.compile(glob_pattern(part)).match
        paths = [
            f"{path}/{name}"
            for path in paths
            for name in tree.names(path)
            if match(name)
        ]
    return [path for path in paths if os.path.lexists(tree.root + path)]


def _number_of(tree: Tree, path: str) -> DeviceNumber | None:
    real = _real_path(tree, path)
    if real is None:
        return None
    try:
        status = Path(tree.root + real).stat()
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            return None  # removed since it was listed
        raise UnreadableHostFile(real, os.strerror(error.errno or 0)) from error
    if not stat.S_ISBLK(status.st_mode):
        return None
    return DeviceNumber(os.major(status.st_rdev), os.minor(status.st_rdev))


def _real_path(tree: Tree, path: str) -> str | None:
    """Follow links as on the host: absolute ones begin at its root."""
    for _ in range(_MOST_LINKS):
        try:
            link = str(Path(tree.root + path).readlink())
        except OSError:
            return tree.target(path)  # not a link, or removed
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return None


def _describe(tree: Tree, number: DeviceNumber) -> BlockDevice:
    """Read a device's facts from sysfs; without sysfs only its number is known."""
    folder = tree.target(f"{_BY_NUMBER}/{number}")
    if folder is None:
        return BlockDevice(number)
    if tree.read(f"{folder}/partition") is not None:
        folder = posixpath.dirname(folder)
        match = _NUMBER.fullmatch(tree.read(f"{folder}/dev") or "")
        if match:
            number = DeviceNumber(int(match[1]), int(match[2]))
    scheduler = _scheduler(tree.read(f"{folder}/queue/scheduler"))
    return BlockDevice(number, posixpath.basename(folder), scheduler)


def _scheduler(text: str | None) -> str:
    """Return the word in brackets of ``none [bfq] kyber``, or the only word."""
    if text is None:
        return ""
    chosen = re.search(r"\[([^]]+)\]", text)
    return chosen[1] if chosen else text if " " not in text else ""
