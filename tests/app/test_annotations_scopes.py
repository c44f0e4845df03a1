from __future__ import annotations

from typing import Any

import pytest

from nri_resmgr.app.annotations import (
    Reading,
    read_preferences,
)
from nri_resmgr.policy.affinity import Affinity, Expression, Operator
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.topology import MemoryKind

NATIVE = "resource-policy.nri.io"
CRI_RM = "cri-resource-manager.intel.com"

KUBELETS = {
    "kubernetes.io/config.seen": "2026-01-01T00:00:00Z",
    "kubernetes.io/config.source": "api",
}


def prefers(**annotations: Any) -> Preferences:
    return Preferences(**annotations)


@pytest.mark.parametrize(
    ("annotations", "shared"),
    [
        pytest.param(
            {
                f"prefer-shared-cpus.{NATIVE}": "false",
                f"prefer-shared-cpus.{NATIVE}/pod": "true",
            },
            True,
            id="the pod before all",
        ),
        pytest.param(
            {
                f"prefer-shared-cpus.{NATIVE}/container.web": "true",
                f"prefer-shared-cpus.{NATIVE}/pod": "false",
            },
            True,
            id="the container before the pod",
        ),
        pytest.param(
            {f"prefer-shared-cpus.{NATIVE}/container.db": "true"},
            None,
            id="another container's is not ours",
        ),
        pytest.param(
            {f"prefer-shared-cpus.{NATIVE}/container.web.side": "true"},
            None,
            id="a container whose name begins the same",
        ),
        pytest.param(
            {
                f"prefer-shared-cpus.{CRI_RM}/pod": "false",
                f"prefer-shared-cpus.{NATIVE}/pod": "true",
            },
            True,
            id="native before CRI-RM",
        ),
        pytest.param(
            {
                f"prefer-shared-cpus.{CRI_RM}/container.web": "true",
                f"prefer-shared-cpus.{NATIVE}/pod": "false",
            },
            True,
            id="narrower before native",
        ),
        pytest.param(
            {
                f"{CRI_RM}/prefer-shared-cpus": "web: true\ndb: false",
                f"prefer-shared-cpus.{CRI_RM}": "false",
            },
            False,
            id="all others before deprecated ones",
        ),
    ],
)
def test_the_annotation_of_the_narrowest_scope_takes_precedence(
    annotations: dict[str, str],
    shared: bool | None,  # noqa: FBT001 - a column of the table
) -> None:
    assert read_preferences(annotations, "web").preferences.shared is shared


@pytest.mark.parametrize(
    ("required", "preferred", "isolated", "strict"),
    [
        pytest.param("/pod", "/pod", True, True, id="at the same scope it stays"),
        pytest.param("/container.web", "/pod", True, True, id="narrower, it stays"),
        pytest.param("", "/pod", False, False, id="a narrower preference replaces it"),
    ],
)
def test_a_requirement_against_a_preference(
    required: str,
    preferred: str,
    isolated: bool,  # noqa: FBT001 - a column of the table
    strict: bool,  # noqa: FBT001 - a column of the table
) -> None:
    reading = read_preferences(
        {
            f"require-isolated-cpus.{NATIVE}{required}": "true",
            f"prefer-isolated-cpus.{NATIVE}{preferred}": "false",
        },
        "web",
    )

    assert reading.preferences == prefers(isolated=isolated, require_isolated=strict)


def test_a_preference_that_cannot_be_read_replaces_no_requirement() -> None:
    reading = read_preferences(
        {
            f"require-isolated-cpus.{NATIVE}": "true",
            f"prefer-isolated-cpus.{NATIVE}/pod": "perhaps",
        },
        "web",
    )

    assert reading.preferences == prefers(isolated=True, require_isolated=True)


@pytest.mark.parametrize(
    ("key", "value", "preferences"),
    [
        pytest.param(
            "prefer-isolated-cpus", "true", prefers(isolated=True), id="one for all"
        ),
        pytest.param(
            "prefer-shared-cpus",
            "web: false\ndb: true",
            prefers(shared=False),
            id="one for each",
        ),
        pytest.param("prefer-shared-cpus", "db: true", prefers(), id="silent about it"),
        pytest.param(
            "memory-type",
            "web: dram,hbm",
            prefers(memory_kinds=frozenset((MemoryKind.DRAM, MemoryKind.HBM))),
            id="a list",
        ),
        pytest.param(
            "cold-start", "duration: 60s", prefers(cold_start=60), id="a duration"
        ),
        pytest.param(
            "cold-start",
            "web:\n  duration: 10s",
            prefers(cold_start=10),
            id="a duration for each",
        ),
        pytest.param(
            "cold-start", "db: {duration: 10s}", prefers(), id="a duration for others"
        ),
        pytest.param(
            "cold-start",
            "{duration: {duration: 9s}, web: {duration: 8s}}",
            prefers(cold_start=8),
            id="a container of an unlucky name",
        ),
    ],
)
def test_annotations_of_older_releases_of_cri_rm_are_read(
    key: str, value: str, preferences: Preferences
) -> None:
    assert read_preferences({f"{CRI_RM}/{key}": value}, "web") == Reading(preferences)


def test_affinity_of_both_kinds_adds_up() -> None:
    reading = read_preferences(
        {
            f"{NATIVE}/affinity": "web: [db]",
            f"{NATIVE}/anti-affinity": "web: [batch]",
            f"{CRI_RM}/affinity": "web: [ignored]",
        },
        "web",
    )

    assert reading == Reading(
        prefers(
            affinities=(
                Affinity(Expression("name", Operator.EQUALS, ("db",))),
                Affinity(Expression("name", Operator.EQUALS, ("batch",)), weight=-1),
            )
        )
    )
