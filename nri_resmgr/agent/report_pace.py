"""When a node reports a change of its configuration: pure, time is an argument.

Nodes that share an object see a change of it at once. The document is in force at once,
too; but reports of all of them in the same second would be a burst that grows with the
cluster, so each node waits for a random time before it reports. An object of one node
is reported at once.
"""

from __future__ import annotations

from typing import Final

from nri_resmgr.agent.choice import Choice, Chosen, Waiting
from nri_resmgr.agent.node_report import Facts
from nri_resmgr.agent.verdict import Outcome

LONGEST: Final = 10.0
"""Seconds over which all nodes of a cluster, as many as there are, spread reports."""

EACH: Final = 0.1
"""Seconds by which each node adds to that, where few share an object."""

PATIENCE: Final = 5.0
"""Seconds in which objects are read, a document is judged, and the daemon answers.
Otherwise a node would report first that it does not know, and a moment later what."""


class ReportPace:
    """Says for how long reports have to wait.

    Args:
        own_name: Name of an object of this node alone.
        at: Now, in monotonic seconds, as everywhere.
    """

    def __init__(self, own_name: str, at: float) -> None:
        self._own_name = own_name
        self._choice: Choice = Waiting()
        self._spread_until = at
        self._answered_until = at + PATIENCE

    def chosen(self, choice: Choice, at: float, chance: float) -> None:
        """Note the choice, which may be the same as before.

        Args:
            choice: Of the object that configures the node.
            at: When it was made.
            chance: A random number from 0 to 1.
        """
        if choice != self._choice:
            self._choice = choice
            self._spread_until = at + chance * spread_of(choice, self._own_name)

    def handed_over(self, at: float) -> None:
        """Note that the daemon has a document to judge."""
        self._answered_until = at + PATIENCE

    def rest(self, facts: Facts, at: float) -> float:
        """Return the seconds for which nothing is to be reported yet.

        Args:
            facts: What would be reported.
            at: Now.
        """
        until = self._spread_until
        if _is_open(facts):
            until = max(until, self._answered_until)
        return max(0.0, until - at)


def spread_of(choice: Choice, own_name: str) -> float:
    """Return the seconds over which nodes spread their reports of a choice.

    Args:
        choice: Of the object that configures the node.
        own_name: Name of an object of this node alone.
    """
    match choice:
        case Waiting():
            return 0.0
        case Chosen(config) if config.name == own_name:
            return 0.0
        case Chosen(config) if config.reported_by:
            return min(LONGEST, EACH * config.reported_by)
    # A new object, or one that is gone: there may be any number of nodes.
    return LONGEST


def _is_open(facts: Facts) -> bool:
    """Return whether an answer that is on its way would be missing in a report."""
    match facts.choice:
        case Waiting(why):
            return not why
        case Chosen() if facts.verdict.outcome is Outcome.PENDING:
            return True
    return facts.state is None
