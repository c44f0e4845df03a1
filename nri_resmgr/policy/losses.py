"""Exclusive CPUs and places that containers would lose to another configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

import msgspec

from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.values import NO_CPUS, CpuSet, InputError

StateT = TypeVar("StateT", bound=KnowsContainers)

_MOST: Final = 20
"""Containers that the sentence names: it is a log line and a status in the cluster."""


class Loss(msgspec.Struct, frozen=True):
    """The exclusive CPUs of a container *before* and *after*, which are fewer."""

    title: str
    before: CpuSet
    after: CpuSet

    def __str__(self) -> str:
        left = f"CPU {self.after}" if self.after else "none"
        return f"{self.title} has CPU {self.before} and would have {left}"


class PlaceChange(msgspec.Struct, frozen=True):
    """A place that a container knows, and the one after it; empty for none."""

    title: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.title} has {self.before} and would have {self.after or 'none'}"


@dataclass(eq=False)
class ExclusiveCpusLost(InputError):
    """A configuration would take exclusive CPUs from running containers."""

    losses: tuple[Loss, ...]

    def __str__(self) -> str:
        return _sentence("takes exclusive CPUs from running containers", self.losses)


@dataclass(eq=False)
class PlacesChanged(InputError):
    """A configuration would change places that running containers know."""

    changes: tuple[PlaceChange, ...]

    def __str__(self) -> str:
        what = "changes what is in the environment of running containers"
        return _sentence(what, self.changes)


def check_losses(
    former: ViewedPolicy[StateT],
    before: StateT,
    policy: ViewedPolicy[StateT],
    after: StateT,
    online: CpuSet,
) -> None:
    """Check that containers keep their exclusive CPUs, and the places that they know.

    Args:
        former: The policy until now.
        before: Its state.
        policy: The next policy; of another kind it need not keep the places.
        after: Its state, with the same containers.
        online: The CPUs of the machine.

    Raises:
        ExclusiveCpusLost: Some would have fewer.
        PlacesChanged: Some would have another place.
    """
    ledger = before.ledger
    if had := former.exclusive_parts(before):
        titles = {key: ledger.spec_of(key).title for key in had}
        now = policy.exclusive_parts(after)
        if losses := losses_of(had, now, titles, online):
            raise ExclusiveCpusLost(losses)
    if former.kind != policy.kind:
        return
    if places := former.fixed_places(before):
        new = policy.fixed_places(after)
        changes = tuple(
            PlaceChange(ledger.spec_of(key).title, place, new.get(key, ""))
            for key, place in places.items()
            if new.get(key) != place
        )
        if changes:
            raise PlacesChanged(changes)


def losses_of(
    before: Mapping[str, CpuSet],
    after: Mapping[str, CpuSet],
    titles: Mapping[str, str],
    online: CpuSet,
) -> tuple[Loss, ...]:
    """Return the losses of containers that have fewer exclusive CPUs afterwards.

    Other CPUs instead are no loss, nor are those that are gone from the machine.

    Args:
        before: Exclusive CPUs by container id.
        after: The same, afterwards.
        titles: How containers are named to users, by id.
        online: The CPUs of the machine.
    """
    return tuple(
        Loss(titles[key], cpus, after.get(key, NO_CPUS))
        for key, cpus in before.items()
        if len(after.get(key, NO_CPUS)) < len(cpus & online)
    )


def _sentence(what: str, each: Sequence[object]) -> str:
    named = "; ".join(map(str, islice(each, _MOST)))
    more = len(each) - _MOST
    rest = f"; and {more} more" if more > 0 else ""
    return (
        f"$.spec: it {what}: {named}{rest}. "
        "If that is meant, write allowLoss: true in the document, or use "
        "`nri-resmgr reload --force`"
    )
