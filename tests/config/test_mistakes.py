"""All mistakes of a document are found, each where it was written."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.config import PolicyConfig
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.mistakes import DocumentCheck, check_document
from nri_resmgr.policies import read_config

HEAD: Final = {"apiVersion": "config.nri/v1alpha1", "kind": "BalloonsPolicy"}

# Where a mistake may be, and the value that is one; lists and mappings on the way.
PLACES: Final[dict[str, object]] = {
    "$.spec.pinCPU": 7,
    "$.spec.pinMem": True,
    "$.spec.reservedPoolNamespaces[0]": 0,
    "$.spec.reservedPoolNamespaces[1]": 1,
    "$.spec.reservedPoolNamespaces[3]": 3,
    "$.spec.balloonTypes[0].minCpus": 1,
    "$.spec.balloonTypes[0].maxCPUs": "many",
    "$.spec.balloonTypes[1].allocatorPriority": "highest",
    "$.spec.balloonTypes[1].preferCloseToDevices[0]": 1,
    "$.spec.balloonTypes[1].preferCloseToDevices[1]": 1,
    "$.spec.loadClasses[0].overloadsLevelInBalloon": "x",
    "$.spec.log.source": "yes",
    "$.spec.control.cpu.classes.a.b.minFreq": "fast",
}


def good() -> dict[str, Any]:
    return {
        "pinCPU": True,
        "reservedPoolNamespaces": ["a", "b", "c", "d"],
        "balloonTypes": [
            {"name": "fast", "maxCPUs": 4},
            {"name": "slow", "preferCloseToDevices": ["/sys/a", "/sys/b"]},
        ],
        "loadClasses": [{"name": "avx", "level": "core"}],
        "log": {},
        "control": {"cpu": {"classes": {"a.b": {}}}},
    }


def plant(spec: Any, path: str, value: object) -> None:
    """Write *value* where the path says; a key may have a dot in it."""
    rest = path.removeprefix("$.spec").replace("a.b", "a/b").replace("[", ".[")
    *way, last = rest.strip(".").split(".")
    for step in way:
        spec = spec[_key(step)]
    spec[_key(last)] = value


def _key(step: str) -> str | int:
    is_place = step.startswith("[")
    return int(step.strip("[]")) if is_place else step.replace("a/b", "a.b")


def judged(spec: object, **top: object) -> DocumentCheck:
    return check_document(
        yaml.safe_dump({**HEAD, **top, "spec": spec}), read_config, lambda _: None
    )


def test_the_example_is_right() -> None:
    found = judged(good())

    assert (found.mistakes, found.is_complete) == ((), True)
    assert found.config is not None


@given(st.sets(st.sampled_from(sorted(PLACES)), min_size=1))
def test_every_mistake_is_reported_with_its_path(paths: set[str]) -> None:
    spec = good()
    for path in paths:
        plant(spec, path, PLACES[path])
    found = judged(spec)
    reported = [
        mistake.path for mistake in found.mistakes if isinstance(mistake, BadSetting)
    ]

    assert sorted(reported) == sorted(paths)
    assert (found.config, found.is_complete) == (None, True)


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        pytest.param(
            {"balloonTypes": [{"nam": "fast"}], "pinCPU": 7},
            ["$.spec.balloonTypes[0].nam", "$.spec.balloonTypes[0].name"],
            id="what is missing cannot be left out",
        ),
        pytest.param(
            {"balloonTypos": [{"name": "fast"}], "pinCPU": 7},
            ["$.spec.balloonTypos"],
            id="others may build on what is left out",
        ),
        pytest.param(
            {"balloonTypes": [{"name": 7}]},
            ["$.spec.balloonTypes[0].name"],
            id="what was left out is not missed",
        ),
    ],
)
def test_an_incomplete_search_is_marked(spec: object, paths: list[str]) -> None:
    found = judged(spec)

    assert [getattr(mistake, "path", "") for mistake in found.mistakes] == paths
    assert not found.is_complete


def test_a_setting_that_does_not_fit_the_machine_is_a_mistake() -> None:
    def fits(config: PolicyConfig) -> None:
        if getattr(config, "reserved", None):
            raise BadSetting("$.spec.reservedResources.cpu", "no such CPU")

    spec = {"reservedResources": {"cpu": "cpuset:99"}, "pinCPU": 7}
    found = check_document(yaml.safe_dump({**HEAD, "spec": spec}), read_config, fits)

    assert [str(mistake) for mistake in found.mistakes] == [
        "$.spec.pinCPU: expected true or false, not 7",
        "$.spec.reservedResources.cpu: no such CPU",
    ]


def test_invalid_yaml_is_one_mistake() -> None:
    found = check_document("a: [", read_config, lambda _: None)

    assert (len(found.mistakes), found.is_complete, found.config) == (1, False, None)


def test_the_number_of_reported_mistakes_is_bounded() -> None:
    found = judged({"reservedPoolNamespaces": list(range(1000))})

    assert (len(found.mistakes), found.is_complete) == (100, False)
