"""Policies obey the annotations that they declare, and no others."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
import pytest

from nri_resmgr.app.annotations.keys import KEYS
from nri_resmgr.app.annotations.unobeyed import field_of
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.preferences import NO_PREFERENCES, Preferences
from nri_resmgr.scenario.read import KINDS, document_of
from nri_resmgr.scenario.rows import ContainerRow
from nri_resmgr.scenario.steps import Create, Stop, Update
from nri_resmgr.values import ResmgrError
from tests.policy.direct import DirectNode
from tests.policy.every_policy import POLICIES
from tests.policy.stories import Story, name_of, stories

# The classes are set by the daemon, and `selects_hints` belongs to hints.
FIELDS: Final = {
    *(set(Preferences.__struct_fields__) - {"rdt_class", "blockio_class"}),
    "hints",
} - {"selects_hints"}


@attrs.define(eq=False, repr=False)
class ForgetfulNode(DirectNode):
    """A node whose policy does not see some fields."""

    unseen: frozenset[str] = frozenset()

    def _spec(self, name: str, row: ContainerRow) -> ContainerSpec:
        spec = super()._spec(name, row)
        usual = {
            field: getattr(NO_PREFERENCES, field) for field in self.unseen - {"hints"}
        }
        return msgspec.structs.replace(
            spec,
            preferences=msgspec.structs.replace(spec.preferences, **usual),
            hints=() if "hints" in self.unseen else spec.hints,
        )

    def _new(self, name: str, row: ContainerRow) -> ContainerSpec:
        return self._spec(name, row)  # what is obeyed is the policy's own business


@cache
def read(path: Path) -> Story:
    return Story.read(path)


def concerned() -> list[Path]:
    texts = ("annotations:", "hints:")
    return [one for one in stories() if any(t in one.read_text() for t in texts)]


def played(path: Path, kind: str, unseen: frozenset[str]) -> list[Any]:
    """Play a story by a policy, maybe not its own; say what came of it."""
    story, own = read(path), KINDS[path.parent.name]
    document = story.document if own == kind else document_of(kind)
    try:
        node = ForgetfulNode.of(story.scenario.machine, document)
    except ResmgrError:
        return []  # a machine that the other policy does not like
    node.unseen = unseen
    found: list[Any] = []
    for step in story.scenario.steps:
        if own != kind and not isinstance(step, Create | Update | Stop):
            continue
        try:
            made = node.play(step)
        except ResmgrError as error:
            found.append(str(error))
        else:
            host = node.policy.host_use(node.state)
            rest = (made.scheduling, made.timers, [one.rule for one in made.reasons])
            found.append((made.pin, made.updates, host, *rest))
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one.kind)
@pytest.mark.parametrize("path", concerned(), ids=name_of)
def test_undeclared_keys_change_nothing(path: Path, policy: Any) -> None:
    unseen = frozenset(FIELDS - policy.obeys)

    assert played(path, policy.kind, unseen) == played(path, policy.kind, frozenset())


@pytest.mark.parametrize(
    ("policy", "field"),
    [(policy, field) for policy in POLICIES for field in sorted(policy.obeys)],
    ids=lambda one: one if isinstance(one, str) else one.kind,
)
def test_declared_keys_change_a_decision(policy: Any, field: str) -> None:
    own = [one for one in concerned() if KINDS[one.parent.name] == policy.kind]

    assert any(
        played(path, policy.kind, frozenset((field,)))
        != played(path, policy.kind, frozenset())
        for path in own
    )


def test_only_fields_that_exist_are_declared() -> None:
    assert set[str]().union(*(one.obeys for one in POLICIES)) <= FIELDS


def test_every_key_belongs_to_a_field() -> None:
    known = {*FIELDS, "rdt_class", "blockio_class", ""}

    assert {field_of(key) for key in KEYS.values()} <= known
