"""Interrupts in documents and annotations: what is read, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nri_resmgr.classes.irq.requests import IrqAffinity, IrqMode, IrqRule
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.interrupts import (
    read_controllable,
    read_irq_affinity,
    read_irq_rule,
)
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table


def table(text: str) -> Table:
    keys = ("controllableInterrupts", "irqClaim", "irqMode")
    return Table.read(parse_yaml(text), *keys)


def affinity(text: str) -> IrqAffinity:
    return read_irq_affinity(parse_yaml(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{}", ("*",), id="all"),
        pytest.param("{controllableInterrupts: []}", ("*",), id="none listed: all"),
        pytest.param(
            '{controllableInterrupts: [24, "*eth?*"]}', ("24", "*eth?*"), id="some"
        ),
    ],
)
def test_controllable_interrupts_are_read(text: str, expected: tuple[str, ...]) -> None:
    assert read_controllable(table(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{}", IrqRule(), id="nothing"),
        pytest.param("{irqMode: isolate}", IrqRule((), IrqMode.ISOLATE), id="a mode"),
        pytest.param(
            '{irqClaim: ["*nvme*", 7], irqMode: sink}',
            IrqRule(("*nvme*", "7"), IrqMode.SINK),
            id="both",
        ),
    ],
)
def test_balloon_types(text: str, expected: IrqRule) -> None:
    assert read_irq_rule(table(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", IrqAffinity(), id="nothing"),
        pytest.param(
            '{claim: ["*eth0*", 24], mask: ["*"], mode: claim-first}',
            IrqAffinity(("*eth0*", "24"), ("*",), claim_first=True),
            id="all of it",
        ),
        pytest.param(
            "{mask: [24], mode: mask-first}", IrqAffinity((), ("24",)), id="the default"
        ),
    ],
)
def test_annotations(text: str, expected: IrqAffinity) -> None:
    assert affinity(text) == expected


@pytest.mark.parametrize(
    ("read", "text", "error"),
    [
        pytest.param(
            lambda text: read_controllable(table(text)),
            "{controllableInterrupts: '*'}",
            "$.controllableInterrupts: expected a list, not '*'",
            id="no list",
        ),
        pytest.param(
            lambda text: read_controllable(table(text)),
            "{controllableInterrupts: ['*', 'eth[01']}",
            "$.controllableInterrupts[1]: not a glob: 'eth[01' "
            "(a set begins with [ and ends with ])",
            id="no glob",
        ),
        pytest.param(
            lambda text: read_irq_rule(table(text)),
            "{irqClaim: [true]}",
            "$.irqClaim[0]: expected text, not True",
            id="no pattern",
        ),
        pytest.param(
            lambda text: read_irq_rule(table(text)),
            "{irqMode: isolated}",
            "$.irqMode: unknown value, did you mean isolate?",
            id="no mode",
        ),
        pytest.param(
            affinity,
            "{claim: [-1]}",
            "$.claim[0]: expected the number of an interrupt, "
            "or a pattern of its name, not '-1'",
            id="no number",
        ),
        pytest.param(
            affinity,
            "{claim: ['']}",
            "$.claim[0]: expected the number of an interrupt, "
            "or a pattern of its name, not ''",
            id="nothing at all",
        ),
        pytest.param(
            affinity,
            "{claims: [1]}",
            "$.claims: unknown key, did you mean claim?",
            id="no such key",
        ),
        pytest.param(
            affinity,
            "[claim]",
            "$: expected a mapping, not a list",
            id="no mapping",
        ),
    ],
)
def test_mistakes(read: Callable[[str], object], text: str, error: str) -> None:
    with pytest.raises(BadSetting) as raised:
        read(text)

    assert str(raised.value) == error
