"""A few files of a kernel that checks and rounds what is written, and may end us."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable

import attrs

from nri_resmgr.host.knobs.files import WritableTree, is_same
from nri_resmgr.host.state_dir import StateDir

CPU0 = "/sys/devices/system/cpu/cpufreq/policy0"
MIN, MAX = f"{CPU0}/scaling_min_freq", f"{CPU0}/scaling_max_freq"
GOVERNOR = f"{CPU0}/scaling_governor"
IRQ = "/proc/irq/24/smp_affinity_list"
DEFAULT = "/proc/irq/default_smp_affinity"

STEP = 100  # frequencies are whole multiples of it


class Died(BaseException):
    """Stands for SIGKILL where the process has to go on."""


@attrs.define(eq=False)
class Kernel:
    """Files in memory.

    Attributes:
        files: Path to text, as the kernel writes it.
        refusals: Path to the error number that a write gets.
        writes: Every write that was taken.
    """

    files: dict[str, str]
    refusals: dict[str, int] = attrs.field(factory=dict)
    writes: list[tuple[str, str]] = attrs.field(factory=list)

    @property
    def root(self) -> str:
        return ""

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        inside = (one for one in self.files if one.rpartition("/")[0] == path)
        return tuple(sorted(one.rpartition("/")[2] for one in inside))

    def target(self, path: str) -> str | None:
        return path if path in self.files else None

    def write(self, path: str, text: str) -> None:
        assert not is_same(path, self.files[path], text), "it has this value already"
        if path in self.refusals:
            raise OSError(self.refusals[path], "refused")
        if path in (MIN, MAX):
            text = str(int(text) // STEP * STEP)
            after = self.files | {path: text}
            if int(after[MIN]) > int(after[MAX]):
                raise OSError(errno.EINVAL, "crossed")
        self.files[path] = text
        self.writes.append((path, text))


@attrs.define(eq=False)
class Mortal:
    """Ends the process before or after one of its writes, of the journal or the host.

    Attributes:
        left: Writes before the one at which it ends; never where that is negative.
        is_late: Whether that one still happens.
    """

    left: int
    is_late: bool
    die: Callable[[], None]

    def around(self, write: Callable[[], None]) -> None:
        if self.left == 0 and not self.is_late:
            self.die()
        write()
        if self.left == 0:
            self.die()
        self.left -= 1


@attrs.define(eq=False)
class MortalFiles:
    """A tree whose writes may be the last thing that happens."""

    files: WritableTree
    mortal: Mortal

    @property
    def root(self) -> str:
        return self.files.root

    def read(self, path: str) -> str | None:
        return self.files.read(path)

    def names(self, path: str) -> tuple[str, ...]:
        return self.files.names(path)

    def target(self, path: str) -> str | None:
        return self.files.target(path)

    def write(self, path: str, text: str) -> None:
        self.mortal.around(lambda: self.files.write(path, text))


class MortalState(StateDir):
    """A state directory whose writes may be the last thing that happens."""

    mortal: Mortal

    def write(self, name: str, text: str) -> None:
        self.mortal.around(lambda: super(MortalState, self).write(name, text))

    def remove(self, name: str) -> None:
        self.mortal.around(lambda: super(MortalState, self).remove(name))


def mortal_state(path: str, mortal: Mortal) -> MortalState:
    state = MortalState.open(path)
    assert isinstance(state, MortalState)
    state.mortal = mortal
    return state


def killed() -> None:
    """End this process as a crash or the kernel would."""
    os.kill(os.getpid(), signal.SIGKILL)


def raised() -> None:
    """End what this process does."""
    raise Died
