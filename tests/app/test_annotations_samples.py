from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from nri_resmgr.app.annotations import Reading, read_preferences
from nri_resmgr.classes.choice import ClassRequest
from nri_resmgr.classes.irq.requests import IrqAffinity, IrqRequest
from nri_resmgr.policy.affinity import Affinity, Expression
from nri_resmgr.topology.hint_options import PathRule
from tests.fast_yaml import read_yaml

SAMPLES_FILE = Path(__file__).with_name("annotation_samples.yaml")
SAMPLES = read_yaml(SAMPLES_FILE)


def plain(value: Any) -> Any:
    match value:
        case frozenset() | tuple():
            ordered = sorted(value) if isinstance(value, frozenset) else value
            return [plain(one) for one in ordered]
        case PathRule():
            return [value.match.value, *value.paths]
        case Expression():
            return [value.key, value.operator.value, *value.values]
        case Affinity():
            scope = {"scope": plain(value.scope)} if value.scope else {}
            return scope | {"match": plain(value.match), "weight": value.weight}
        case ClassRequest() | IrqRequest() | IrqAffinity():
            fields = msgspec.structs.asdict(value)
            # No annotation is an adjustment of the cluster.
            assert not fields.pop("by_adjustment", False)
            return {name: plain(one) for name, one in fields.items()}
        case _:
            return value


def said(reading: Reading) -> dict[str, Any]:
    """Write down what a reading says that no annotation at all would not say."""
    return {
        name: plain(value)
        for part, silent in (
            (reading.preferences, Reading().preferences),
            (reading.hints, Reading().hints),
        )
        for name, value in msgspec.structs.asdict(part).items()
        # That there are hint options at all, beside what they are.
        if value != getattr(silent, name) and name != "selects_hints"
    }


@pytest.mark.parametrize("sample", SAMPLES, ids=[one["title"] for one in SAMPLES])
def test_annotations_of_users_are_read_unchanged(sample: dict[str, Any]) -> None:
    readings = {
        container: read_preferences(sample["annotations"], container)
        for container in sample["expect"]
    }

    assert {name: said(one) for name, one in readings.items()} == sample["expect"]
    problems = [problem for one in readings.values() for problem in one.problems]
    assert list(problems) == []
