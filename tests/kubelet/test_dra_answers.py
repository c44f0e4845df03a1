"""Errors of claims: what the kubelet is sent, and shows as events of pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nri_resmgr.kubelet.dra import ClaimName, DraPlugin, PluginPaths, PreparedDevice
from nri_resmgr.testing.kubelet.dra import DraCalls, KubeletClaim
from nri_resmgr.values import PolicyError

DRIVER = "cpu.example.com"


@dataclass(eq=False)
class NoRoom(PolicyError):
    """The refusal of a claim, with its name as others wrote it."""

    claim: ClaimName

    def __str__(self) -> str:
        return f"claim {self.claim.name}: no room"


class FullNode:
    """Refuses all claims."""

    async def prepare(self, claim: ClaimName) -> Sequence[PreparedDevice]:
        raise NoRoom(claim)

    async def unprepare(self, claim: ClaimName) -> None:
        raise NoRoom(claim)

    def devices(self) -> Sequence[tuple[str, str]]:
        return ()


async def errors_for(folder: Path, name: str) -> list[str]:
    """Return the errors of preparing a claim of that name, and of taking it back."""
    paths = PluginPaths.of(folder, DRIVER)
    claim = KubeletClaim("shop", name, "1")
    async with DraPlugin(DRIVER, paths, FullNode()).serving():
        calls = DraCalls(paths.endpoint)
        prepared, returned = await calls.prepare(claim), await calls.unprepare(claim)
        return [prepared["1"].error, returned["1"].error]


async def test_errors_for_the_kubelet_are_printable(folder: Path) -> None:
    found = await errors_for(folder, "a\x1b[2J\u202e\n")

    assert found == [r"claim a\x1b[2J\u202e\n: no room"] * 2


async def test_errors_for_the_kubelet_fit_into_an_event(folder: Path) -> None:
    found = await errors_for(folder, "\x1b" * 990)

    assert [len(one) for one in found] == [1003] * 2
    assert all(one.isprintable() for one in found)
