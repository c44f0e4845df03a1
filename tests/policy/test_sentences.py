"""Every word of a reason has a sentence."""

from __future__ import annotations

from nri_resmgr.policy.balloons.choose_type import choose_type
from nri_resmgr.policy.cpus import TopologyLevel
from nri_resmgr.policy.cpus.level_sentences import LEVEL_SENTENCES
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.sentences import (
    DECIDED_SENTENCES,
    RULE_SENTENCES,
    TYPE_SENTENCES,
)
from nri_resmgr.policy.topology_aware.criteria import Criterion


def test_every_rule_and_level_has_one() -> None:
    assert RULE_SENTENCES.keys() == set(Rule)
    assert LEVEL_SENTENCES.keys() == set(TopologyLevel)


def test_each_difference_of_pools_has_one() -> None:
    assert DECIDED_SENTENCES.keys() == {*map(str, Criterion), "crowd"}


def test_whatever_leads_to_a_type_of_balloon_has_one() -> None:
    consts = {one for one in choose_type.__code__.co_consts if isinstance(one, str)}

    assert TYPE_SENTENCES.keys() <= consts
    assert TYPE_SENTENCES.keys().isdisjoint(DECIDED_SENTENCES)
