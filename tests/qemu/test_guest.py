from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from tests.qemu.boots import BOOT_SECONDS, BUILD_SECONDS, boot
from tests.qemu.machine import MANY_NODES

# What a many-node machine or a real containerd can show, and nothing else: an
# emulated CPU takes seconds to import what the host tests in a blink.
_MARK = r"^[^#]*\bpytest\.mark\.(?:{})\b"
# What these show on the host needs no many-node machine, and half a minute each there.
_HOST_ONLY = (
    # What is decided after an absence; one of resource_policy shows that it is written.
    "tests/containerd/test_away.py",
    # Which services systemd runs depends on no kernel.
    "tests/containerd/test_bound_kubelet.py",
    "tests/containerd/test_busy_node.py",
    # The runtime decides, and the host has the guest's release.
    "tests/containerd/test_conflicts.py",
    "tests/containerd/test_update_conflicts.py",
    "tests/containerd/test_inspect.py",
    "tests/containerd/test_enable_runtime.py",
    "tests/containerd/test_image_pod.py",
    "tests/containerd/test_kills.py",
    "tests/containerd/test_killed_run.py",
    "tests/containerd/test_container_files.py",
    "tests/containerd/test_real_host.py",
    "tests/containerd/test_topology_aware.py",
    "tests/containerd/test_running_containers.py",
    "tests/containerd/test_launched.py",
    "tests/containerd/test_memory_classes.py::test_settings_that_runtime",
    # The runtime decides, and the host has the guest's release and a newer one.
    "tests/containerd/test_required_plugins.py",
    "tests/containerd/test_resource_policy.py::test_dry_run",
    # Those of cgroups differ there; what else plugins can do the runtime does.
    *(
        f"tests/containerd/test_sample_plugins.py::test_{name}"
        for name in (
            "cdi",
            "changes",
            "devices",
            "groups",
            "hooks",
            "pods",
            "ulimits",
            "what",
        )
    ),
    # The stories have refusals here. What a containerd does after its own end depends
    # on no kernel.
    "tests/containerd/test_resource_policy.py::test_a_request_that_does_not_fit",
    "tests/containerd/test_resource_policy.py::test_a_killed_containerd",
    "tests/containerd/test_scheduling_classes.py::test_all_of",
    "tests/containerd/test_scheduling_classes.py::test_a_namespace",
    "tests/containerd/test_verification.py",
    # One test shows that the kernel lets the sandbox be pinned.
    "tests/containerd/test_virtual_machines.py::test_an_operator",
    "tests/containerd/test_virtual_machines.py::test_with_an_overhead",
    "tests/deploy/dist/test_sbom.py",
    "tests/deploy/test_foreign_image.py",
    "tests/deploy/test_image.py",
    # About runs of pytest.
    "tests/gate/test_tested_versions.py",
    "tests/kubernetes/test_kubelet_story.py",
    # Levels differ in what a runtime may be sent, and not in what a kernel does.
    "tests/running/test_unasked.py::test_a_reload[0.6.0]",
    "tests/running/test_unasked.py::test_a_repair_of_drift[0.6.0]",
)
_DESELECTED = tuple(f"--deselect={prefix}" for prefix in _HOST_ONLY)
_SHAPE = "tests/qemu/guest_tests/test_emulated_machine.py::test_has_16_cpus_and_5_nodes"


@attrs.frozen
class Guest:
    """Tests that share a boot.

    Attributes:
        marks: Of its tests.
        but: Marks of tests that are another guest's.
        at_least: Fewer tests mean that the guest did not find them.
    """

    marks: tuple[str, ...]
    but: tuple[str, ...]
    at_least: int

    @property
    def expression(self) -> str:
        """Pytest's for these tests."""
        without = "".join(f" and not {mark}" for mark in self.but)
        return f"({' or '.join(self.marks)}){without}"

    def modules(self) -> list[str]:
        """Return modules with such a test, as paths in the checkout."""
        checkout = Path(__file__).parents[2]
        marked = re.compile(_MARK.format("|".join(self.marks)), re.MULTILINE)
        return [
            str(path.relative_to(checkout))
            for path in sorted(checkout.glob("tests/**/test_*.py"))
            if marked.search(path.read_text())
            and str(path.relative_to(checkout)) not in _HOST_ONLY
        ]


# Two boots: beside containers that still run, a move of memory takes minutes, because
# the kernel moves pages of the C library, too, which all of them have mapped. And a
# boot that fails because of the emulator costs less.
CONTAINERS = Guest(("containerd",), (), 70)
KERNEL = Guest(("machine", "numa"), ("containerd",), 50)


@pytest.mark.qemu
@pytest.mark.timeout(BUILD_SECONDS + 2 * BOOT_SECONDS)
@pytest.mark.parametrize(
    "guest",
    [
        pytest.param(CONTAINERS, id="containers"),
        # With the other boots one after the other: two at a time keep two CPUs busy.
        pytest.param(KERNEL, id="kernel", marks=pytest.mark.xdist_group("boots")),
    ],
)
def test_guest(guest: Guest, tmp_path: Path, subtests: pytest.Subtests) -> None:
    options = ("-m", guest.expression, "--continue-on-collection-errors")
    arguments = (*guest.modules(), *options, *_DESELECTED)

    ran = boot(MANY_NODES, arguments, tmp_path / "guest", subtests)

    assert len(ran) >= guest.at_least
    assert guest is CONTAINERS or _SHAPE in ran
