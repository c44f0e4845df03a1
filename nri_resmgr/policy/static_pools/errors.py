"""Refusals of the static-pools policy."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values import PolicyError
from nri_resmgr.values.counts import count_text


@dataclass(eq=False)
class BadPoolRequest(PolicyError):
    """A container's environment or command line has a value without a meaning."""

    title: str
    what: str
    value: str
    expected: str

    def __str__(self) -> str:
        return f"{self.title}: {self.what} is {self.value!r}, expected {self.expected}"


@dataclass(eq=False)
class NoListsRequested(PolicyError):
    """A container of an exclusive pool requests none of its lists."""

    title: str
    pool: str
    advice: str = ""

    def __str__(self) -> str:
        return (
            f"{self.title} asks for the exclusive pool {self.pool}, and its resources "
            f"for no list of it{_after(self.advice)}"
        )


@dataclass(eq=False)
class ListsShort(PolicyError):
    """A pool has too few free lists.

    Attributes:
        socket: The socket that the container asks for; below 0 for any.
        free: The lists that are free there.
        taken: The number of lists there that other containers have.
        advice: What would help, each tried by the policy.
    """

    title: str
    pool: str
    socket: int
    wanted: int
    free: tuple[str, ...]
    taken: int
    advice: str = ""

    def __str__(self) -> str:
        where = f" of socket {self.socket}" if self.socket >= 0 else ""
        asked = count_text(self.wanted, "CPU list")
        free = f"{len(self.free)} ({', '.join(self.free)})" if self.free else "0"
        return (
            f"{self.title} asks for {asked}{where} in the pool "
            f"{self.pool}; free: {free}, held by other containers: {self.taken}"
            f"{_after(self.advice)}"
        )


def _after(advice: str) -> str:
    return f"; {advice}" if advice else ""
