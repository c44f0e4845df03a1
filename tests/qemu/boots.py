"""A boot whose tests are tests here, and that is tried again if the emulator fails."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.qemu.image import guest_image
from tests.qemu.machine import Machine, Run, run_guest
from tests.qemu.report import Outcome
from tests.qemu.tools import require_tools
from tests.real_host.absent import give_up
from tests.real_host.debian import PackageUnavailable, Suite

BUILD_SECONDS: Final = 600.0  # An empty cache is filled first.
# For a guest that hangs: one needs 3 to 15 minutes on an idle machine, and took 45
# beside four busy loops. CI ends a run after 90.
BOOT_SECONDS: Final = 5400.0


def boot(
    machine: Machine,
    arguments: tuple[str, ...],
    folder: Path,
    subtests: pytest.Subtests,
) -> frozenset[str]:
    """Run pytest in a guest, and return the names of tests that were not skipped.

    Skips where a guest cannot be had. Takes up to twice `BOOT_SECONDS`, and
    `BUILD_SECONDS` before the first boot on this machine.

    Args:
        machine: What is booted.
        arguments: Pytest's.
        folder: The guest's reports are kept there.
        subtests: Get each test of the guest.
    """
    try:
        require_tools()
        suite = Suite.of("trixie")
    except PackageUnavailable as reason:
        give_up(f"no emulated machine: {reason}")
    image = guest_image(suite)
    run = run_guest(image, machine, arguments, folder, BOOT_SECONDS)
    if run.panicked:
        # Most likely the emulator's fault, not ours; but it must not be overlooked.
        with subtests.test(msg="the guest's kernel runs on"):
            pytest.skip(f"it panicked, so it was booted again: {run.console[-6000:]}")
        run = run_guest(image, machine, arguments, folder, BOOT_SECONDS)

    _show(run, subtests)
    assert run.report.complete, (
        f"{run.ended}; the console's end:\n{run.console[-6000:]}"
    )
    return frozenset(
        result.name
        for result in run.report.results
        if result.outcome is not Outcome.SKIPPED
    )


def _show(run: Run, subtests: pytest.Subtests) -> None:
    """Let each test of the guest be one here."""
    for result in run.report.results:
        with subtests.test(msg=f"{result.name} ({result.seconds:.1f} s in the guest)"):
            if result.outcome is Outcome.FAILED:
                pytest.fail(result.text, pytrace=False)
            if result.outcome is Outcome.SKIPPED:
                pytest.skip(result.text)
