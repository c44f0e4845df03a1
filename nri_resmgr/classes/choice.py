"""Which class a container has: by annotation, by its place, or by its QoS class."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

from nri_resmgr.values import PolicyError, QosClass


class ClassRequest(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A class that an annotation names.

    Attributes:
        name: The class; whether it exists is checked later.
        key: The annotation, for messages.
        of_container: Whether the annotation names this container. One of the whole
            pod need not be met for each of its containers.
    """

    name: str
    key: str = ""
    of_container: bool = False


class Origin(enum.StrEnum):
    """Source of a class; an earlier one overrides those below it."""

    ANNOTATION = "annotation"
    TYPE = "balloon-type"
    QOS = "qos"


class ClassChoice(msgspec.Struct, frozen=True):
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
    request: ClassRequest | None, given: str, qos: QosClass | None
) -> ClassChoice | None:
    """Find the class of a container; whether there is one is looked up by others.

    Args:
        request: What its annotations say.
        given: What its place says; empty for nothing.
        qos: Its QoS class, where that is a name of a class.

    >>> choose(None, "slow", QosClass.BURSTABLE)
    ClassChoice(name='slow', origin=<Origin.TYPE: 'balloon-type'>)
    """
    if request is not None:
        return ClassChoice(request.name, Origin.ANNOTATION)
    if given:
        return ClassChoice(given, Origin.TYPE)
    return None if qos is None else ClassChoice(qos.value, Origin.QOS)
