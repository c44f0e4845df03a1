"""A kernel in memory that takes and refuses what frequency drivers do."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from nri_resmgr.host.recorded import RecordedTree

_GOVERNOR, _EPP = "scaling_governor", "energy_performance_preference"
_PAIRS = {"scaling_min_freq": "scaling_max_freq", "min_freq_khz": "max_freq_khz"}


class CpuKernel:
    """Files of frequency drivers that know what goes together.

    A preference other than performance is refused beside that governor, which itself
    sets it, and gives it back when it goes (intel_pstate). No minimum is above its
    maximum. Words have to be among those that are available.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(files)
        self._saved: dict[str, str] = {}

    @property
    def root(self) -> str:
        return ""

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        return RecordedTree(self.files).names(path)

    def target(self, path: str) -> str | None:
        return RecordedTree(self.files).target(path)

    def write(self, path: str, text: str) -> None:
        folder, _, name = path.rpartition("/")
        if name == _EPP:
            self._prefer(folder, text)
        elif name == _GOVERNOR:
            self._govern(folder, text)
        elif name in (*_PAIRS, *_PAIRS.values()):
            self._limit(folder, name, int(text))
        self.files[path] = text

    def _prefer(self, folder: str, text: str) -> None:
        words = self.files[f"{folder}/energy_performance_available_preferences"]
        if not (text in words.split() or 0 <= int(text) < 256):
            raise refused(errno.EINVAL)
        is_performance = self.files[f"{folder}/{_GOVERNOR}"] == "performance"
        if is_performance and text not in ("0", "performance"):
            raise refused(errno.EBUSY)

    def _govern(self, folder: str, text: str) -> None:
        if text not in self.files[f"{folder}/scaling_available_governors"].split():
            raise refused(errno.EINVAL)
        before, path = self.files[f"{folder}/{_GOVERNOR}"], f"{folder}/{_EPP}"
        if path in self.files and "performance" in {before, text} != {before}:
            if text == "performance":
                self._saved[folder] = self.files[path]
                self.files[path] = "performance"
            else:
                self.files[path] = self._saved.pop(folder, "balance_performance")

    def _limit(self, folder: str, name: str, number: int) -> None:
        for low, high in _PAIRS.items():
            limits = {low: 0, high: 0}
            if name in limits:
                limits = {one: int(self.files[f"{folder}/{one}"]) for one in limits}
                limits[name] = number
                if limits[low] > limits[high]:
                    raise refused(errno.EINVAL)


def refused(number: int) -> OSError:
    return OSError(number, os.strerror(number))
