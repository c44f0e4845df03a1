from __future__ import annotations

from pathlib import Path

import pytest

from tests.qemu.image import guest_image
from tests.qemu.machine import run_guest
from tests.qemu.report import Outcome, read_report
from tests.qemu.tools import require_tools
from tests.testbed.debian import PackageUnavailable, Suite

# Only what a many-node machine or a real containerd can show runs in the guest.
_FOLDERS = ("tests/qemu/guest_tests", "tests/containerd", "tests/host")
_MARKERS = ("-m", "containerd or numa")
_AT_LEAST = 8  # Fewer mean that the guest did not find its tests.
_SECONDS = 1800.0


@pytest.mark.qemu
@pytest.mark.xdist_group("qemu")
@pytest.mark.timeout(_SECONDS + 900)  # An empty cache is filled first.
def test_guest(tmp_path: Path, subtests: pytest.Subtests) -> None:
    try:
        require_tools()
        suite = Suite.of("trixie")
    except PackageUnavailable as reason:
        pytest.skip(f"no emulated machine: {reason}")
    folders = tuple(name for name in _FOLDERS if Path(name).is_dir())

    junit = run_guest(guest_image(suite), (*folders, *_MARKERS), tmp_path, _SECONDS)

    results = read_report(junit)
    for result in results:
        with subtests.test(msg=f"{result.name} ({result.seconds:.1f} s in the guest)"):
            if result.outcome is Outcome.FAILED:
                pytest.fail(result.text, pytrace=False)
            if result.outcome is Outcome.SKIPPED:
                pytest.skip(result.text)
    passed = [result for result in results if result.outcome is Outcome.PASSED]
    assert len(passed) >= _AT_LEAST, junit
    shape = "tests.qemu.guest_tests.test_emulated_machine::test_has_16_cpus_and_5_nodes"
    assert shape in [result.name for result in passed]
