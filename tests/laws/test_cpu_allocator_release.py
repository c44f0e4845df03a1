"""CPUs that are freed and requested again are the same."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy.cpus import (
    CpuPreferences,
    CpuRequest,
    allocate_cpus,
    release_cpus,
)
from nri_resmgr.values import CpuSet
from tests.policy.cpus.drawn_requests import (
    LARGE,
    Case,
    machine_of,
    preferring_requests,
    subsets,
    uniform_requests,
)

CASES = st.one_of(preferring_requests(), preferring_requests(LARGE), uniform_requests())


def asked_again(request: CpuRequest, pick: CpuSet, gone: CpuSet, spec: str) -> CpuSet:
    """Ask for as many as *gone*, now that these are free and the rest is held."""
    stay = pick - gone
    again = msgspec.structs.replace(
        request,
        count=len(gone),
        free=request.free - stay,
        held=request.held | stay,
    )
    return allocate_cpus(again, machine_of(spec)).cpus


@given(CASES, st.data())
def test_any_part_of_a_pick_is_found_again_beside_the_rest(
    case: Case, data: st.DataObject
) -> None:
    request, spec = case
    pick = allocate_cpus(request, machine_of(spec)).cpus
    gone = data.draw(subsets(pick), label="gone")

    assert asked_again(request, pick, gone, spec) == gone


@given(CASES, st.data())
def test_released_cpus_are_found_again_beside_the_rest(
    case: Case, data: st.DataObject
) -> None:
    request, spec = case
    pick = allocate_cpus(request, machine_of(spec)).cpus
    count = data.draw(st.integers(0, len(pick)), label="count")
    kept = {name: getattr(request, name) for name in CpuPreferences.__struct_fields__}
    gone = release_cpus(pick, count, machine_of(spec), CpuPreferences(**kept)).cpus

    assert asked_again(request, pick, gone, spec) == gone
