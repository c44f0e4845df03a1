"""The candidates of `explain` are those of the decision, as long as nothing changes."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from nri_resmgr.control.explain import candidates_of
from nri_resmgr.policy.rules import Rule
from tests.control.daemon_parts import make_parts
from tests.examples import examples

STATIC = """\
apiVersion: config.nri/v1alpha1
kind: StaticPolicy
spec: {reservedResources: {cpu: 1}}
"""


@examples(0.25)
@example([1.5, 1.5, 1.5, 0.1, 5])  # others make way
@given(st.lists(st.sampled_from([0.1, 0.5, 1.5, 1, 2, 3, 5]), min_size=1, max_size=8))
def test_the_best_candidate_of_the_last_container_is_its_pool(
    requests: list[float],
) -> None:
    parts = make_parts("2s2n3c2t")
    for number, cpus in enumerate(requests):
        others = [f"id-{one}" for one in range(number)]
        before = [len(parts.history.changes_of(one)) for one in others]
        parts.run(f"{number}", cpus)
        story = parts.history.changes_of(f"id-{number}")
        if not story or story[-1].reason.tried:
            continue  # refused, or the best one did not take it
        reason, policy = story[-1].reason, parts.policy
        best, *_ = candidates_of(f"id-{number}", policy.policy, policy.state)

        assert reason.rule is not Rule.FELL_BACK
        assert best["pool"] == reason.pool
        changes = [parts.history.changes_of(one) for one in others]
        news = [
            one[-1].reason.rule
            for one, count in zip(changes, before, strict=True)
            if len(one) > count
        ]
        # Where others made way, the pools that it was not put in are not as they were.
        if Rule.MOVED not in news:
            assert best["decided"] == reason.decided


def test_candidates_have_their_scores_in_order_of_precedence() -> None:
    parts = make_parts("1s2n4c1t")
    parts.run("a", 2)
    parts.run("b", 1)
    found = list(candidates_of("id-b", parts.policy.policy, parts.policy.state))

    assert [one["pool"] for one in found] == [
        "NUMA node #0",
        "NUMA node #1",
        "socket #0",
    ]
    first, second = ([tuple(m.values()) for m in one["scores"]] for one in found[:2])
    differing = [pair for pair in zip(first, second, strict=True) if len({*pair}) > 1]
    assert differing[0] == (("spread", 3000), ("spread", 2000))
    assert found[0]["decided"] == "spread"


def test_policies_without_ranking_have_no_candidates() -> None:
    parts = make_parts(document=STATIC)
    parts.run("a", 2)

    assert list(candidates_of("id-a", parts.policy.policy, parts.policy.state)) == []
