"""The daemon's verdict on a document of the spool."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from nri_resmgr.agent.daemon_state import JudgedConfiguration, Trial
from nri_resmgr.values.counts import count_text

_MOST_SHOWN: Final = 5
"""Containers that the sentence about a trial names."""


class Outcome(Enum):
    """The outcome of a document that was handed over."""

    PENDING = "pending"
    """The daemon has not judged it yet, or does not answer."""

    ACCEPTED = "accepted"
    """It is in force."""

    TRIED = "tried"
    """It is tried out (``mode: DryRun``): the former one is in force."""

    REJECTED = "rejected"
    """It has a mistake, or does not fit the node."""

    IGNORED = "ignored"
    """Another source has precedence on this node."""


class Verdict(msgspec.Struct, frozen=True):
    """A verdict.

    Attributes:
        outcome: What has become of the document.
        why: A sentence; empty for an accepted one. Of one that is tried out: what it
            would change.
    """

    outcome: Outcome
    why: str = ""


PENDING = Verdict(Outcome.PENDING)
"""Before there is a verdict."""


def verdict_of(judged: JudgedConfiguration | None, uid: str, digest: str) -> Verdict:
    """Return the verdict on the document that was handed over.

    Args:
        judged: What the daemon has judged last; perhaps a document before this one.
        uid: Of its object.
        digest: Of its text.
    """
    if judged is None:
        return PENDING
    if judged.problem:
        return Verdict(Outcome.PENDING, judged.problem)
    if (judged.object.uid, judged.digest) != (uid, digest):
        return PENDING
    if judged.would_change is not None:
        return Verdict(Outcome.TRIED, _sentence_of(judged.would_change))
    try:
        return Verdict(Outcome(judged.verdict), judged.why)
    except ValueError:
        # Of a daemon of another version: it may mean anything.
        why = f"the daemon's verdict {judged.verdict!r} is not known to this agent"
        return Verdict(Outcome.PENDING, why)


def _sentence_of(trial: Trial) -> str:
    if not trial.count:
        return "it would change no container"
    shown = [
        f"{one.title}: CPUs {one.now.cpus or 'all'} to {one.then.cpus or 'all'}, "
        f"memory of nodes {one.now.mems or 'all'} to {one.then.mems or 'all'}"
        for one in trial.containers[:_MOST_SHOWN]
    ]
    more = ", among them " if trial.count > len(shown) else ": "
    count = count_text(trial.count, "container")
    return f"it would change {count}{more}{'; '.join(shown)}"
