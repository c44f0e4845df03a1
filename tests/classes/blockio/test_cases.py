"""Configurations worked out by hand: what they write, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from nri_resmgr.config import BadSetting
from tests.classes.blockio.samples import CGROUPS, cases, classes_of, one_class


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name)
        for name, case in cases("weights", "throttles", "devices", "overrides")
    ],
)
def test_a_class_writes(case: dict[str, Any]) -> None:
    found = one_class(case["set"])

    kinds = [kind for kind in CGROUPS if kind in case]
    assert kinds or "oci" in case
    written = {kind: found.files(CGROUPS[kind]) for kind in kinds}
    assert written == {
        kind: {name: tuple(lines) for name, lines in case[kind].items()}
        for kind in kinds
    }
    if "oci" in case:
        assert found.oci() == case["oci"]
    left_out = {
        kind: [one.subject for one in found.left_out(CGROUPS[kind])] for kind in kinds
    }
    wanted = case.get("left_out", {})
    assert left_out == {kind: wanted.get(kind, []) for kind in kinds}
    if "notices" in case:
        assert [str(one) for one in found.notices] == case["notices"]


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=name) for name, case in cases("mistakes")]
)
def test_a_mistake_is_reported_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(BadSetting) as error:
        classes_of(case["document"])

    assert str(error.value) == case["error"]


def test_an_empty_file_has_no_classes() -> None:
    assert classes_of(None) == {}
    assert classes_of({"Classes": None}) == {}
