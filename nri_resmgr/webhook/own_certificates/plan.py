"""What is to be done about certificates: from what is stored to the next step."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta
from typing import Final

import msgspec

from nri_resmgr.webhook.x509 import BadCertificate, Validity, first_validity

RENEWED_AT: Final = 2 / 3
"""The share of a certificate's life after which there is another one."""

AHEAD: Final = timedelta(minutes=5)
"""How far the clocks of replicas may differ: a certificate that begins later is bad."""


class Pair(msgspec.Struct, frozen=True):
    """A certificate of the server, with its key and its CA; all in PEM."""

    authority: str
    certificate: str
    key: str

    @property
    def validity(self) -> Validity | None:
        """The dates; None where it is no certificate."""
        try:
            return first_validity(self.certificate)
        except BadCertificate:
            return None


class Stored(msgspec.Struct, frozen=True):
    """What the Secret has.

    Attributes:
        current: In use; None before the first one.
        following: In use soon: until then API servers learn its CA.
        former: The CA of the certificate in use before, which a replica may still show.
    """

    current: Pair | None = None
    following: Pair | None = None
    former: str = ""

    @property
    def bundle(self) -> str:
        """The CAs that API servers have to trust."""
        found = (
            self.current.authority if self.current else "",
            self.following.authority if self.following else "",
            self.former,
        )
        return "".join(f"{one.strip()}\n" for one in found if one.strip())


class Step(enum.Enum):
    """What is to be done next."""

    NOTHING = enum.auto()
    MAKE_CURRENT = enum.auto()
    """There is none that can be used."""
    MAKE_FOLLOWING = enum.auto()
    USE_FOLLOWING = enum.auto()
    FORGET_FORMER = enum.auto()


def next_step(stored: Stored, now: datetime, *, is_known: bool) -> Step:
    """Return the next step.

    Args:
        stored: What the Secret has.
        now: The time.
        is_known: Whether all API servers and replicas have had the time to learn what
            is stored.
    """
    current = _usable(stored.current, now)
    following = _usable(stored.following, now)
    if current is None:
        return Step.MAKE_CURRENT if following is None else Step.USE_FOLLOWING
    if following is not None:
        return Step.USE_FOLLOWING if is_known else Step.NOTHING
    if now >= current.at(RENEWED_AT):
        return Step.MAKE_FOLLOWING
    return Step.FORGET_FORMER if stored.former and is_known else Step.NOTHING


def after(step: Step, stored: Stored, made: Pair | None = None) -> Stored:
    """Return what is to be stored after a step; *made* is a new certificate."""
    match step:
        case Step.MAKE_CURRENT if made is not None:
            return Stored(made)
        case Step.MAKE_FOLLOWING if made is not None:
            return msgspec.structs.replace(stored, following=made)
        case Step.USE_FOLLOWING:
            former = stored.current.authority if stored.current else ""
            return Stored(stored.following, None, former)
        case Step.FORGET_FORMER:
            return msgspec.structs.replace(stored, former="")
    return stored


def _usable(pair: Pair | None, now: datetime) -> Validity | None:
    validity = pair.validity if pair else None
    if validity is None or not validity.since - AHEAD <= now < validity.until:
        return None
    return validity
