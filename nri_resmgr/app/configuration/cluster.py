"""Documents that the agent has handed over, and the verdict on each, as values."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.app.configuration.status import WouldChange
from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.spool import ClusterObject
from nri_resmgr.values import ResmgrError

_NO_ERRORS: Final[Mapping[str, str]] = {}


class Verdict(enum.StrEnum):
    """The daemon's verdict on a document.

    `IGNORED` may be invalid: another source takes precedence, or it is for other nodes.
    """

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    IGNORED = "ignored"


class DocumentMistake(msgspec.Struct, frozen=True):
    """A mistake in a document.

    Attributes:
        path: Its place, as in ``$.spec.reservedResources.cpu``; empty if it has none.
        line: Counted from 1; 0 if unknown.
        column: Likewise.
    """

    why: str
    path: str = ""
    line: int = 0
    column: int = 0

    @classmethod
    def of(cls, error: ResmgrError) -> DocumentMistake:
        """Take the place out of an error that has one."""
        match error:
            case BadSetting():
                return cls(error.why, error.path)
            case BadSyntax():
                return cls(error.why, line=error.line, column=error.column)
            case _:
                return cls(str(error))


class JudgedConfiguration(msgspec.Struct, frozen=True):
    """The configuration that was handed over last.

    Attributes:
        why: Why it is not in force, in one sentence; empty if it is.
        mistakes: The same with places, where it has any.
        since: When the verdict was reached; seconds since the epoch.
        gone: When the cluster ceased to have a document for this node; 0 while it has.
        problem: Why the present file could not be read; the verdict is on the last
            good one.
        would_change: The containers that it would change; None unless its mode is
            ``DryRun``.
    """

    object: ClusterObject
    verdict: Verdict
    since: float
    why: str = ""
    mistakes: tuple[DocumentMistake, ...] = ()
    gone: float = 0.0
    problem: str = ""
    would_change: tuple[WouldChange, ...] | None = None


class JudgedAdjustment(msgspec.Struct, frozen=True):
    """An adjustment that was handed over.

    Attributes:
        errors: By id of the container; by its own name for a mistake in it, and
            ``request`` for the set as a whole.
    """

    object: ClusterObject
    verdict: Verdict
    errors: Mapping[str, str] = _NO_ERRORS


class JudgedAdjustments(msgspec.Struct, frozen=True):
    """All adjustments that were handed over last, which are accepted as a whole.

    Attributes:
        digest: SHA-256 of their text.
        since: When the verdict was reached; seconds since the epoch.
        errors: Of all, including those of adjustments that are removed.
        problem: Why the present file could not be read; the verdict is on the last
            good one.
    """

    digest: str
    verdict: Verdict
    since: float
    adjustments: tuple[JudgedAdjustment, ...] = ()
    errors: Mapping[str, str] = _NO_ERRORS
    problem: str = ""


class AgentReport(msgspec.Struct, frozen=True):
    """The last report of the agent about itself.

    Attributes:
        seen: When, by the monotonic clock.
        contact: When it last had an answer of the API server, by the monotonic clock;
            None if never.
        problem: What keeps it from its work; empty for nothing.
    """

    version: str
    node: str
    seen: float
    contact: float | None = None
    problem: str = ""


class ClusterStatus(msgspec.Struct, frozen=True):
    """The spool folder, the agent, and the verdicts.

    Attributes:
        path: Of the spool folder.
        problem: Why the folder cannot be read; empty if it can.
        agent: None if it has not reported to this process.
        silence: Seconds since its last report, or since this process began.
        absent: Whether that is so long that no agent seems to run.
    """

    path: str
    problem: str
    agent: AgentReport | None
    silence: float
    absent: bool
    configuration: JudgedConfiguration | None
    adjustments: JudgedAdjustments | None
