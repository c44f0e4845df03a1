from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy.affinity import Affinity, Expression, Operator
from nri_resmgr.policy.events import NO_PIN, ContainerSpec
from nri_resmgr.policy.ledger import Ledger
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.policy.topology_aware.affinity_score import (
    affinity_scores,
    affinity_weights,
)
from nri_resmgr.policy.topology_aware.demand import CpuKind
from nri_resmgr.policy.topology_aware.pool_ledger import Grant
from nri_resmgr.policy.topology_aware.pools import Pool, PoolTree
from nri_resmgr.policy.topology_aware.settings import TopologyAwareSettings
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

WORDS = ("a", "b", "ab", "a:b")
TREES = tuple(
    PoolTree.of(machine, machine.online, CpuSet.of(0))
    for machine in map(parse_spec, ("2c", "2s2c", "2s2n2c", "2s2n4c l3=2", "1s4n2c"))
)


def texts() -> st.SearchStrategy[str]:
    return st.sampled_from(WORDS)


@st.composite
def containers(draw: st.DrawFn, number: int) -> ContainerSpec:
    return ContainerSpec(
        id=f"c{number}",
        pod=draw(texts()),
        namespace=draw(texts()),
        name=draw(texts()),
        pod_name=draw(texts()),
        labels=draw(st.dictionaries(texts(), texts(), max_size=2)),
    )


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    single = ("name", "namespace", "labels/a", "pod/name")
    parts = draw(st.lists(st.sampled_from(single), min_size=1, max_size=2))
    key = parts[0] if len(parts) == 1 else f":;-{';'.join(parts)}"
    operator = draw(st.sampled_from(Operator))
    values = st.sampled_from((*WORDS, "*", "a*", "?", "a-b"))
    return Expression(key, operator, tuple(draw(st.lists(values, max_size=3))))


def rules() -> st.SearchStrategy[list[Affinity]]:
    scopes = st.none() | expressions()
    return st.lists(
        st.builds(Affinity, expressions(), scopes, st.integers(-1000, 1000)), max_size=4
    )


def value_of(spec: ContainerSpec, key: str) -> str | None:
    if key.startswith(":;-"):
        found = [value_of(spec, part) for part in key[3:].split(";")]
        return None if set(found) == {None} else "-".join(one or "" for one in found)
    known = {
        "name": spec.name,
        "namespace": spec.namespace,
        "pod/name": spec.pod_name,
        "labels/a": spec.labels.get("a"),
    }
    return known[key]


def globbed(value: str, pattern: str) -> bool:
    """Match by hand: a star takes any beginning, a question mark one sign."""
    if not pattern:
        return not value
    if pattern[0] == "*":
        return any(globbed(value[n:], pattern[1:]) for n in range(len(value) + 1))
    fits = bool(value) and pattern[0] in ("?", value[0])
    return fits and globbed(value[1:], pattern[1:])


def answer(spec: ContainerSpec, question: Expression) -> bool:
    found = value_of(spec, question.key)
    here = found is not None
    same = here and any(one in (found, "*") for one in question.values)
    like = here and any(globbed(found or "", one) for one in question.values)
    return {
        Operator.EQUALS: same,
        Operator.IN: same,
        Operator.NOT_EQUAL: not same,
        Operator.NOT_IN: not same,
        Operator.EXISTS: here,
        Operator.NOT_EXIST: not here,
        Operator.ALWAYS_TRUE: True,
        Operator.MATCHES: like,
        Operator.MATCHES_ANY: like,
        Operator.MATCHES_NOT: not like,
        Operator.MATCHES_NONE: not like,
    }[question.operator]


@given(st.data(), rules(), st.integers(0, 8))
def test_weights_are_those_of_matching_every_rule_with_every_container(
    data: st.DataObject, written: list[Affinity], count: int
) -> None:
    new = ContainerSpec(
        id="new", pod="a", preferences=Preferences(affinities=tuple(written))
    )
    others = [data.draw(containers(number)) for number in range(count)]
    ledger = Ledger.of()
    for one in (*others, new):
        ledger = ledger.put(one, NO_PIN)
    cpus = CpuSet.of(0)

    actual = affinity_weights(
        new, ledger, TopologyAwareSettings(available=cpus, reserved=cpus)
    )

    expected = {
        other.id: sum(
            rule.weight
            for rule in written
            if (answer(other, rule.scope) if rule.scope else other.pod == "a")
            and answer(other, rule.match)
        )
        for other in others
    }
    assert actual == {key: weight for key, weight in expected.items() if weight}


def distance(one: Pool, other: Pool) -> int | None:
    """Count the steps between two pools; None where neither is above the other."""
    if one.id in other.path:
        return other.path.index(one.id)
    return one.path.index(other.id) if other.id in one.path else None


@given(
    st.sampled_from(TREES),
    st.lists(st.tuples(st.integers(-1000, 1000), st.integers(0, 99)), max_size=9),
)
def test_scores_are_exact_and_equal_where_they_should_be(
    tree: PoolTree, granted: list[tuple[int, int]]
) -> None:
    weights = {str(n): weight for n, (weight, _) in enumerate(granted)}
    grants = {
        str(n): Grant(str(n), CpuKind.SHARED, place % len(tree.pools))
        for n, (_, place) in enumerate(granted)
    }

    actual = affinity_scores(weights, grants, tree)

    scale = 4 ** max(pool.depth for pool in tree.pools)
    for pool, score in zip(tree.pools, actual, strict=True):
        expected = Fraction(0)
        for key, weight in weights.items():
            comparisons = distance(pool, tree.pools[grants[key].pool])
            if comparisons is not None:
                expected += weight * Fraction(3, 4) ** comparisons
        assert score == expected * scale
