"""Interrupts as the kernel reports them."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.classes.irq.interrupts import Interrupt
from nri_resmgr.host.interrupts import read_default_cpus, read_interrupts
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import NO_CPUS, CpuSet

# A server with two CPUs, and what else stands in this file.
INTERRUPTS = """\
           CPU0       CPU1
  8:          0          0  IO-APIC   8-edge      rtc0
  0:         44          0   IO-APIC   2-edge      timer
  9:          1          3  IO-APIC   9-fasteoi   acpi, i801_smbus
 28:          0          0 PCI-MSIX-0000:00:01.0   0-edge      nvme0q0
131:     123456 4294967295 PCI-MSIX-0000:00:04.0   2-edge      eth0-tx
132:          0          0
NMI:          0          0   Non-maskable interrupts
ERR:          0
"""

AFFINITIES = {
    "0": "0-1",
    "8": "0",
    "9": "0-1",
    "28": "",
    "131": "1",
    "132": "nonsense",
}


def host(root: Path, interrupts: str = INTERRUPTS) -> HostTree:
    (root / "proc/irq").mkdir(parents=True)
    (root / "proc/interrupts").write_text(interrupts)
    (root / "proc/irq/default_smp_affinity").write_text("00000000,00000003\n")
    for number, cpus in AFFINITIES.items():
        (root / "proc/irq" / number).mkdir()
        (root / "proc/irq" / number / "smp_affinity_list").write_text(f"{cpus}\n")
    return HostTree(root)


def test_numbered_rows_with_an_affinity_are_interrupts(tmp_path: Path) -> None:
    assert read_interrupts(host(tmp_path)) == (
        Interrupt(0, "IO-APIC 2-edge timer", CpuSet.of(0, 1)),
        Interrupt(8, "IO-APIC 8-edge rtc0", CpuSet.of(0)),
        Interrupt(9, "IO-APIC 9-fasteoi acpi, i801_smbus", CpuSet.of(0, 1)),
        Interrupt(131, "PCI-MSIX-0000:00:04.0 2-edge eth0-tx", CpuSet.of(1)),
    )


def test_original_affinities_replace_those_in_force(tmp_path: Path) -> None:
    tree = host(tmp_path)
    originals = {
        "/proc/irq/8/smp_affinity_list": "0-1",
        "/proc/irq/default_smp_affinity": "2",
    }
    found = {one.number: one.cpus for one in read_interrupts(tree, originals)}

    assert (found[8], found[131]) == (CpuSet.of(0, 1), CpuSet.of(1))
    assert read_default_cpus(tree, originals) == CpuSet.of(1)


def test_the_default_is_a_mask(tmp_path: Path) -> None:
    assert read_default_cpus(host(tmp_path)) == CpuSet.of(0, 1)


def test_a_host_that_reports_nothing_has_no_interrupts(tmp_path: Path) -> None:
    tree = HostTree(tmp_path)

    assert (read_interrupts(tree), read_default_cpus(tree)) == ((), NO_CPUS)


def test_this_machine_has_interrupts() -> None:
    found = read_interrupts(HostTree("/"))

    assert all(one.cpus and one.name for one in found)
    assert [one.number for one in found] == sorted({one.number for one in found})
