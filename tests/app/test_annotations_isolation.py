"""CRI-O's isolation annotations, read for containers."""

from __future__ import annotations

import pytest

from nri_resmgr.app.annotations import Reading, read_preferences
from nri_resmgr.classes.isolation.requests import (
    IrqBalancing,
    IsolationRequest,
    Mistake,
)
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences


def wishing(**wish: bool | str) -> Preferences:
    return Preferences(isolation=IsolationRequest(**wish))  # type: ignore[arg-type] # by name


@pytest.mark.parametrize(
    ("annotations", "preferences"),
    [
        pytest.param(
            {
                "cpu-load-balancing.crio.io": "disable",
                "cpu-quota.crio.io": "disable",
                "irq-load-balancing.crio.io": "housekeeping",
                "cpu-c-states.crio.io": "max_latency:10",
                "cpu-freq-governor.crio.io": "performance",
                "cpu-shared.crio.io/web": "enable",
            },
            wishing(
                unbalanced=True,
                unlimited=True,
                irq=IrqBalancing.HOUSEKEEPING,
                wake_latency="10",
                governor="performance",
                shared=True,
            ),
            id="all of them",
        ),
        pytest.param(
            {"cpu-quota.crio.io": "disable", "cpu-quota.crio.io/web": "enable"},
            wishing(unlimited=False),
            id="the container before the pod",
        ),
        pytest.param(
            {"cpu-quota.crio.io/db": "disable"},
            NO_PREFERENCES,
            id="another container's is not ours",
        ),
        pytest.param(
            {
                "userns-mode.crio.io": "auto",
                "cpu-quota.crio.io.other.example": "disable",
                "xcpu-quota.crio.io": "disable",
            },
            NO_PREFERENCES,
            id="what is CRI-O's alone is left to it",
        ),
    ],
)
def test_keys_of_cri_o_are_read(
    annotations: dict[str, str], preferences: Preferences
) -> None:
    assert read_preferences(annotations, "web") == Reading(preferences)


def test_mistakes_are_kept_until_their_relevance_is_known() -> None:
    found = read_preferences(
        {
            "cpu-quota.crio.io": "off",
            "cpu-c-states.crio.io/web": "C6",
            "cpu-freq-governor.crio.io": "performance",
        },
        "web",
    )

    assert found == Reading(
        Preferences(
            isolation=IsolationRequest(
                governor="performance",
                mistakes=(
                    Mistake(
                        "cpu-c-states.crio.io/web",
                        "expected enable, disable or max_latency:MICROSECONDS, "
                        "not 'C6'",
                    ),
                    Mistake(
                        "cpu-quota.crio.io", "expected disable or enable, not 'off'"
                    ),
                ),
            )
        )
    )
