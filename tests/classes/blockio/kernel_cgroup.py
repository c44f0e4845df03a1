"""A cgroup that takes and refuses writes as the kernel's io and blkio files do."""

from __future__ import annotations

import re

from nri_resmgr.classes.blockio import Features, Files

_DEFAULT = {"io.weight": 100, "io.bfq.weight": 100, "blkio.bfq.weight": 100}
_RANGE = {"io.weight": (1, 10000), "blkio.weight": (10, 1000)}
_MOST_IOPS = (1 << 32) - 1


class Refused(Exception):
    """The kernel answers with an error."""


class KernelCgroup:
    """What a cgroup holds, by file, device and key; defaults are not there.

    Source:
        Linux, block/blk-throttle.c, block/bfq-cgroup.c, block/blk-iocost.c.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self.values: dict[tuple[str, str, str], int] = {}
        self.writes = 0

    def write_all(self, files: Files) -> None:
        for file, lines in files.items():
            for line in lines:
                self.write(file, line)

    def write(self, file: str, text: str) -> None:
        self.writes += 1
        if "\n" in text:
            raise Refused(text)
        if file == "io.max" and self.features.is_v2:
            self._limit(text)
        elif file.startswith("blkio.throttle.") and not self.features.is_v2:
            device, rate = self._device(text)
            self._set((file, device, ""), int(rate), none=0)
        elif file == self.features.device_weight_file and " " in text:
            device, weight = self._device(text)
            self._set((file, device, ""), self._weight(file, weight), none=0)
        elif file == self.features.weight_file:
            default = _DEFAULT.get(file, 500)
            self._set((file, "", ""), self._weight(file, text), none=default)
        else:
            raise Refused(f"no file {file} for {text}")

    def _limit(self, text: str) -> None:
        device, words = self._device(text)
        for word in words.split(" "):
            key, rate = word.split("=")
            if key not in ("rbps", "wbps", "riops", "wiops") or rate == "0":
                raise Refused(text)
            number = -1 if rate == "max" else int(rate)
            if key.endswith("iops") and number >= _MOST_IOPS:
                number = -1
            self._set(("io.max", device, key), number, none=-1)

    def _weight(self, file: str, text: str) -> int:
        if text == "default" or (text == "0" and file == "blkio.weight_device"):
            return 0
        low, high = _RANGE.get(file, (1, 1000))
        if not low <= int(text) <= high:
            raise Refused(f"{file}: {text}")
        return int(text)

    def _device(self, text: str) -> tuple[str, str]:
        match = re.fullmatch(r"(\d+:\d+) (.*)", text)
        if match is None:
            raise Refused(text)
        return match[1], match[2]

    def _set(self, place: tuple[str, str, str], value: int, *, none: int) -> None:
        if value == none:
            self.values.pop(place, None)
        else:
            self.values[place] = value
