from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.qemu.image import guest_image
from tests.qemu.machine import run_guest
from tests.qemu.report import Outcome, read_report
from tests.qemu.tools import require_tools
from tests.testbed.debian import PackageUnavailable, Suite

# What a many-node machine or a real containerd can show, and nothing else: an
# emulated CPU takes seconds to import what the host tests in a blink.
_MARKED = re.compile(r"^[^#]*\bpytest\.mark\.(?:containerd|numa)\b", re.MULTILINE)
_OPTIONS = ("-m", "containerd or numa", "--continue-on-collection-errors")
_SHAPE = "tests.qemu.guest_tests.test_emulated_machine::test_has_16_cpus_and_5_nodes"
_AT_LEAST = 18  # Fewer mean that the guest did not find its tests.
_SECONDS = 1800.0


def guest_modules() -> list[str]:
    """Modules with a test for the guest, as paths in the checkout."""
    checkout = Path(__file__).parents[2]
    return [
        str(path.relative_to(checkout))
        for path in sorted(checkout.glob("tests/**/test_*.py"))
        if _MARKED.search(path.read_text())
    ]


@pytest.mark.qemu
@pytest.mark.xdist_group("qemu")
@pytest.mark.timeout(_SECONDS + 900)  # An empty cache is filled first.
def test_guest(tmp_path: Path, subtests: pytest.Subtests) -> None:
    try:
        require_tools()
        suite = Suite.of("trixie")
    except PackageUnavailable as reason:
        pytest.skip(f"no emulated machine: {reason}")
    arguments = (*guest_modules(), *_OPTIONS)

    results = read_report(run_guest(guest_image(suite), arguments, tmp_path, _SECONDS))

    for result in results:
        with subtests.test(msg=f"{result.name} ({result.seconds:.1f} s in the guest)"):
            if result.outcome is Outcome.FAILED:
                pytest.fail(result.text, pytrace=False)
            if result.outcome is Outcome.SKIPPED:
                pytest.skip(result.text)
    ran = {result.name for result in results if result.outcome is not Outcome.SKIPPED}
    assert _SHAPE in ran
    assert len(ran) >= _AT_LEAST
