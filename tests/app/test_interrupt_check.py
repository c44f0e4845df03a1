"""Containers may ask only for interrupts that may be moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.app.classes.interrupts import InterruptCheck, KnownInterrupts
from nri_resmgr.app.classes.setter import NewContainer
from nri_resmgr.classes.irq.interrupts import DeniedInterrupt
from nri_resmgr.classes.irq.requests import IrqAffinity, IrqRequest
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.stub import Container, Pod
from tests.app.class_rig import files_of
from tests.daemon.host_nodes import KERNEL
from tests.waiting import until


def asking_for(*patterns: str) -> NewContainer:
    preferences = Preferences(irq=IrqRequest(IrqAffinity(patterns)))
    spec = ContainerSpec(id="c", preferences=preferences)
    return NewContainer(Pod(id="p"), Container(id="c"), spec)


def test_others_are_refused(tmp_path: Path) -> None:
    files_of(tmp_path, KERNEL)
    check = InterruptCheck(("*eth*",), KnownInterrupts(HostTree(tmp_path)))
    check.check(asking_for("*eth0*"))

    with pytest.raises(DeniedInterrupt, match="nvme"):
        check.check(asking_for("*nvme*"))


def test_unreadable_interrupts_refuse_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "proc/interrupts").mkdir(parents=True)
    check = InterruptCheck(("*eth*",), KnownInterrupts(HostTree(tmp_path)))

    check.check(asking_for("*nvme*"))


async def test_a_request_reads_them_again_for_later_ones(tmp_path: Path) -> None:
    files_of(tmp_path, KERNEL)
    known = KnownInterrupts(HostTree(tmp_path), interval=0.0)
    (tmp_path / "proc/interrupts").write_text(" 31: 0 PCI-MSI 1-edge eth0-rx-0\n")

    assert [one.number for one in known.present] == [28, 31]
    await until(lambda: [one.number for one in known.present] == [31])
