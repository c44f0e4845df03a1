"""Plans of any configuration: classes within partitions, partitions apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nri_resmgr.classes.rdt.capabilities import Capabilities, RdtCache
from nri_resmgr.classes.rdt.errors import BadClass, BadShare, CannotAllocate
from nri_resmgr.classes.rdt.plan import Plan, plan_of
from nri_resmgr.classes.rdt.settings import (
    ALL,
    Allocations,
    BitMask,
    CacheAllocation,
    Percent,
    PercentRange,
    RdtClass,
    RdtConfig,
    RdtPartition,
)
from nri_resmgr.classes.rdt.text import parse_cache_ids, parse_cache_share
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.rdt import read_rdt_document

_IDS = (0, 1, 7)


def masks_of(text: str) -> dict[str, dict[int, int]]:
    """Read the masks of schemata: by resource, then by cache id."""
    rows = dict(line.split(":") for line in text.splitlines())
    return {
        resource: {
            int(field.split("=")[0]): int(field.split("=")[1], 16)
            for field in row.split(";")
        }
        for resource, row in rows.items()
    }


@st.composite
def machines(draw: st.DrawFn) -> Capabilities:
    cache = RdtCache(
        (1 << draw(st.integers(4, 32))) - 1, draw(st.integers(0, 3)), False, 16, _IDS
    )
    names = draw(st.sampled_from([("L3",), ("L3CODE", "L3DATA")]))
    return Capabilities(dict.fromkeys(names, cache))


@st.composite
def partitions(draw: st.DrawFn) -> RdtConfig:
    count = draw(st.integers(1, 4))
    most = 100 // count
    share = st.builds(Percent, st.integers(1, most))
    own = st.one_of(
        st.builds(Percent, st.integers(1, 100)),
        st.builds(PercentRange, st.integers(0, 50), st.integers(51, 100)),
        st.builds(BitMask, st.integers(1, 7)),
    )
    apart = draw(st.booleans())

    def by_ids(one: st.SearchStrategy[Any]) -> Allocations:
        code, data = (draw(one), draw(one)) if apart else (None, None)
        whole = CacheAllocation(draw(one), code, data)
        named = CacheAllocation(draw(one), code, data)
        return Allocations({"L3": {ALL: whole, draw(st.sampled_from(_IDS)): named}})

    return RdtConfig(
        tuple(
            RdtPartition(
                f"p{at}",
                by_ids(share),
                (RdtClass(f"whole{at}"), RdtClass(f"part{at}", by_ids(own))),
            )
            for at in range(count)
        )
    )


def check_classes(plan: Plan, count: int, min_bits: int) -> None:
    """Check that what one partition's classes have is within it, and no one else's."""
    taken: dict[tuple[str, int], int] = {}
    for at in range(count):
        whole, part = (
            masks_of(plan.schemata[f"{name}{at}"]) for name in ("whole", "part")
        )
        for resource, by_id in whole.items():
            for cache_id, mask in by_id.items():
                own = part[resource][cache_id]
                assert own | mask == mask
                assert "01" not in f"{own:b}"
                assert own.bit_count() >= max(min_bits, 1)
                assert not taken.get((resource, cache_id), 0) & mask
                taken[resource, cache_id] = taken.get((resource, cache_id), 0) | mask


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(machines(), partitions())
def test_classes_are_within_their_partition_and_partitions_apart(
    machine: Capabilities, config: RdtConfig
) -> None:
    cache = next(iter(machine.caches.values()))
    try:
        plan = plan_of(config, machine)
    except CannotAllocate:
        return

    assert all(
        list(masks_of(text)) == list(machine.caches) for text in plan.schemata.values()
    )
    check_classes(plan, len(config.partitions), cache.min_bits)


_TEXT = st.one_of(st.text(), st.text("0123456789,-x%af", max_size=9))


@given(_TEXT)
def test_any_text_is_a_share_or_refused(text: str) -> None:
    try:
        share = parse_cache_share(text)
    except BadShare:
        return
    match share:
        case Percent(percent):
            assert text == f"{text[:-1]}%"
            assert int(text[:-1]) == percent
        case PercentRange(low, high):
            assert [int(one) for one in text[:-1].split("-")] == [low, high]
        case BitMask(bits):
            if text.startswith("0x"):
                assert int(text, 16) == bits
            else:
                ids = parse_cache_ids(text)
                assert sorted(ids) == [at for at in range(64) if bits >> at & 1]


_DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), _TEXT, st.just("50%")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.one_of(
                st.integers(),
                st.text(max_size=3),
                st.sampled_from(
                    (
                        *("partitions", "classes", "options", "l3", "optional"),
                        *("kubernetes", "l3Allocation", "mbAllocation", "all"),
                        *("unified", "code", "data"),
                    )
                ),
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=12,
)


@given(_DOCUMENTS, _DOCUMENTS)
def test_any_document_is_read_or_refused(options: object, rows: object) -> None:
    machine = Capabilities({"L3": RdtCache(0xFF, 1, False, 16, (0,))})
    for document in (
        rows,
        {"options": options, "partitions": rows},
        {"partitions": {"p": {"l3Allocation": rows, "classes": {"c": options}}}},
        {"partitions": {"p": {"mbAllocation": rows, "l3Allocation": options}}},
    ):
        try:
            plan = plan_of(read_rdt_document(document), machine)
        except (BadSetting, CannotAllocate):
            continue
        assert isinstance(plan, Plan)


def test_a_name_is_under_4096_characters() -> None:
    machine = Capabilities({"L3": RdtCache(0xFF, 1, False, 16, (0,))})
    name = "n" * 4095
    plan = plan_of(RdtConfig((RdtPartition("p", classes=(RdtClass(name),)),)), machine)

    assert plan == Plan({name: "L3:0=ff\n"})
    with pytest.raises(BadClass) as found:
        plan_of(
            RdtConfig((RdtPartition("p", classes=(RdtClass(f"{name}n"),)),)), machine
        )
    assert str(found.value) == (
        f"RDT partition 'p', class '{'n' * 20}…': the name has to be under 4096"
        " characters"
    )


def test_a_partition_comes_once() -> None:
    with pytest.raises(BadClass, match="RDT partition 'p': there is another"):
        plan_of(RdtConfig((RdtPartition("p"), RdtPartition("p"))), Capabilities({}))
