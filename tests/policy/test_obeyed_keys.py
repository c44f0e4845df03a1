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
    """A node whose policy does not see some fields.

    Attributes:
        unseen: These fields.
        asked: All fields that containers have set.
    """

    unseen: frozenset[str] = frozenset()
    asked: set[str] = attrs.field(factory=set)

    def _spec(self, name: str, row: ContainerRow) -> ContainerSpec:
        spec = super()._spec(name, row)
        usual = {one: getattr(NO_PREFERENCES, one) for one in FIELDS - {"hints"}}
        self.asked |= {
            *(one for one in usual if getattr(spec.preferences, one) != usual[one]),
            *(("hints",) if spec.hints else ()),
        }
        if self.unseen.isdisjoint(self.asked):
            return spec
        unset = {one: usual[one] for one in self.unseen - {"hints"}}
        return msgspec.structs.replace(
            spec,
            preferences=msgspec.structs.replace(spec.preferences, **unset),
            hints=() if "hints" in self.unseen else spec.hints,
        )

    def _new(self, name: str, row: ContainerRow) -> ContainerSpec:
        return self._spec(name, row)  # what is obeyed is the policy's own business


@cache
def read(path: Path) -> Story:
    return Story.read(path)


@cache
def concerned(kind: str) -> list[Path]:
    """Find the stories of a folder in which containers may set a field."""
    texts = ("annotations:", "hints:")
    return [one for one in stories(kind) if any(t in one.read_text() for t in texts)]


@cache
def empty(machine: str, document: str) -> ForgetfulNode | None:
    """Set up a node; None for a machine that the policy does not like."""
    try:
        return ForgetfulNode.of(machine, document)
    except ResmgrError:
        return None


def played(path: Path, kind: str, unseen: frozenset[str]) -> tuple[list[Any], set[str]]:
    """Play a story by a policy, maybe not its own.

    Returns:
        What came of it, and the fields that its containers set.
    """
    story, own = read(path), KINDS[path.parent.name]
    document = story.document if own == kind else document_of(kind)
    first = empty(story.scenario.machine, document)
    if first is None:
        return [], set()
    state = first.policy.start()
    node = ForgetfulNode(first.machine, document, first.policy, state, unseen=unseen)
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
    return found, node.asked


@cache
def with_all(path: Path, kind: str) -> tuple[list[Any], set[str]]:
    """Play a story by a policy that sees all fields."""
    return played(path, kind, frozenset())


def obeyed(path: Path, kind: str, fields: frozenset[str]) -> list[str]:
    """Return the fields without which other decisions come of a story.

    Where none of *fields* is set, to forget them changes no request: such a story is
    not played again.
    """
    usual, asked = with_all(path, kind)

    def matter(some: frozenset[str]) -> bool:
        return not some.isdisjoint(asked) and played(path, kind, some)[0] != usual

    if not matter(fields):
        return []
    return [one for one in sorted(fields) if matter(frozenset((one,)))] or [*fields]


# By folder first: a worker that tests several policies reads its stories once.
@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one.kind)
@pytest.mark.parametrize("folder", KINDS)
def test_undeclared_keys_change_nothing(folder: str, policy: Any) -> None:
    undeclared = frozenset(FIELDS - policy.obeys)
    found = {
        name_of(path): obeyed(path, policy.kind, undeclared)
        for path in concerned(folder)
    }

    assert {name: fields for name, fields in found.items() if fields} == {}


@pytest.mark.parametrize(
    ("policy", "field"),
    [(policy, field) for policy in POLICIES for field in sorted(policy.obeys)],
    ids=lambda one: one if isinstance(one, str) else one.kind,
)
def test_declared_keys_change_a_decision(policy: Any, field: str) -> None:
    [folder] = (name for name, kind in KINDS.items() if kind == policy.kind)

    assert any(
        obeyed(path, policy.kind, frozenset((field,))) for path in concerned(folder)
    )


def test_only_fields_that_exist_are_declared() -> None:
    assert set[str]().union(*(one.obeys for one in POLICIES)) <= FIELDS


def test_every_key_belongs_to_a_field() -> None:
    known = {*FIELDS, "rdt_class", "blockio_class", ""}

    assert {field_of(key) for key in KEYS.values()} <= known
