"""Which class a container has: by annotation, by its place, or by its QoS class."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

from nri_resmgr.classes.request import ClassRequest
from nri_resmgr.values import PolicyError, QosClass


class Origin(enum.StrEnum):
    """Who says it; an earlier one goes before all below it."""

    ANNOTATION = "annotation"
    TYPE = "balloon-type"
    QOS = "qos"


class Choice(msgspec.Struct, frozen=True):
    """A class by its name, and who says so."""

    name: str
    origin: Origin


@dataclass(eq=False)
class UnknownClass(PolicyError):
    """An annotation asks for a class that there is not.

    Attributes:
        title: The container, for people.
        kind: What the class is of.
        name: The class.
        key: The annotation.
        known: The names of all classes.
    """

    title: str
    kind: str
    name: str
    key: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known, help_ = "none is defined", "add the class to the configuration"
        if self.known:
            known = f"known: {', '.join(self.known)}"
            help_ = f"name one of these, or {help_}"
        return (
            f"{self.title} asks for {self.kind} class {self.name!r} by {self.key}; "
            f"{known}; {help_}"
        )


@dataclass(eq=False)
class ClassDenied(PolicyError):
    """A class may not be chosen by such an annotation; see `UnknownClass`."""

    title: str
    kind: str
    name: str
    key: str
    flag: str

    def __str__(self) -> str:
        return (
            f"{self.title} asks for {self.kind} class {self.name!r} by {self.key}, "
            f"which {self.flag} of the class forbids; name another class"
        )


@dataclass(eq=False)
class ClassMissing(PolicyError):
    """A class is configured, and this node does not have it; see `UnknownClass`."""

    title: str
    kind: str
    name: str
    key: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.title} asks for {self.kind} class {self.name!r} by {self.key}, "
            f"which this node does not have: {self.why}"
        )


def choose(
    wish: ClassRequest | None, given: str, qos: QosClass | None
) -> Choice | None:
    """Find the class of a container; whether there is one is looked up by others.

    Args:
        wish: What its annotations say.
        given: What its place says; empty for nothing.
        qos: Its QoS class, where that is a name of a class.

    >>> choose(None, "slow", QosClass.BURSTABLE)
    Choice(name='slow', origin=<Origin.TYPE: 'balloon-type'>)
    """
    if wish is not None:
        return Choice(wish.name, Origin.ANNOTATION)
    if given:
        return Choice(given, Origin.TYPE)
    return None if qos is None else Choice(qos.value, Origin.QOS)
