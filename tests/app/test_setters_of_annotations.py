"""Setters that follow annotations see each pod that has one of theirs."""

from __future__ import annotations

import pytest

from nri_resmgr.app.annotations.keys import KEYS, KeyTarget
from nri_resmgr.app.classes.interrupts import InterruptCheck
from nri_resmgr.app.classes.isolation import IsolationSetter
from nri_resmgr.app.classes.memory.setter import MemorySetter
from nri_resmgr.app.classes.scheduling import SchedulingSetter
from nri_resmgr.classes.memory.misc import EPC_KEY, MISC_KEY
from nri_resmgr.classes.memory.numa import CLASS_KEY, POLICY_KEY
from nri_resmgr.classes.memory.qos import QOS_SUFFIX
from nri_resmgr.stub.runtime_info import RuntimeInfo

SCHEDULING = SchedulingSetter(RuntimeInfo(), has_classes=False)

MEMORY = (f"memory.high{QOS_SUFFIX}", EPC_KEY, MISC_KEY, CLASS_KEY, POLICY_KEY)
OF_CRI_O = [key for key, one in KEYS.items() if one.target is KeyTarget.ISOLATION]

SEEN = [
    (InterruptCheck, "irq-affinity"),
    (SCHEDULING, "scheduling-class"),
    *((IsolationSetter, key) for key in OF_CRI_O),
    *((MemorySetter, key) for key in MEMORY),
]


@pytest.mark.parametrize(("setter", "key"), SEEN)
def test_a_setter_sees_its_annotations(setter: type[MemorySetter], key: str) -> None:
    assert key in (*KEYS, *MEMORY)
    assert any(part in key for part in setter.annotations)


def test_setters_of_configured_classes_see_every_pod() -> None:
    assert not SchedulingSetter(RuntimeInfo(), has_classes=True).annotations
