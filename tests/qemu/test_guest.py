from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.qemu.boots import BUILD_SECONDS, boot
from tests.qemu.machine import MANY_NODES

# What a many-node machine or a real containerd can show, and nothing else: an
# emulated CPU takes seconds to import what the host tests in a blink.
_MARKS = r"^[^#]*\bpytest\.mark\.(?:containerd|machine|numa)\b"
_MARKED = re.compile(_MARKS, re.MULTILINE)
_OPTIONS = ("-m", "containerd or machine or numa", "--continue-on-collection-errors")
# What these show on the host needs no many-node machine, and half a minute each there.
_HOST_ONLY = (
    "tests/containerd/test_busy_node.py",
    "tests/containerd/test_enable_runtime.py",
    "tests/containerd/test_image_pod.py",
    "tests/containerd/test_kills.py",
    "tests/containerd/test_container_files.py",
    "tests/containerd/test_real_host.py",
    "tests/containerd/test_topology_aware.py",
    "tests/containerd/test_launched.py",
    "tests/containerd/test_memory_classes.py::test_what_the_runtime",
    "tests/containerd/test_resource_policy.py::test_dry_run",
    "tests/containerd/test_scheduling_classes.py::test_all_of",
    "tests/containerd/test_scheduling_classes.py::test_a_namespace",
    "tests/containerd/test_verification.py",
    "tests/deploy/test_image.py",
)
_DESELECTED = tuple(f"--deselect={prefix}" for prefix in _HOST_ONLY)
_SHAPE = "tests/qemu/guest_tests/test_emulated_machine.py::test_has_16_cpus_and_5_nodes"
_AT_LEAST = 75  # Fewer mean that the guest did not find its tests.
_BOOT_SECONDS = 1500.0  # Three times what it takes beside another busy worker.


def guest_modules() -> list[str]:
    """Modules with a test for the guest, as paths in the checkout."""
    checkout = Path(__file__).parents[2]
    return [
        str(path.relative_to(checkout))
        for path in sorted(checkout.glob("tests/**/test_*.py"))
        if _MARKED.search(path.read_text())
        and str(path.relative_to(checkout)) not in _HOST_ONLY
    ]


@pytest.mark.qemu
@pytest.mark.xdist_group("qemu")
@pytest.mark.timeout(BUILD_SECONDS + 2 * _BOOT_SECONDS)
def test_guest(tmp_path: Path, subtests: pytest.Subtests) -> None:
    arguments = (*guest_modules(), *_OPTIONS, *_DESELECTED)

    ran = boot(MANY_NODES, arguments, tmp_path / "guest", _BOOT_SECONDS, subtests)

    assert _SHAPE in ran
    assert len(ran) >= _AT_LEAST
