"""The tree of errors: its branches say who can act, its leaves what happened."""

from __future__ import annotations

from dataclasses import dataclass


class ResmgrError(Exception):
    """Root of the tree of expected errors; any other exception is a bug.

    Attributes:
        is_logged: Whether it is in the log already, so that the reply to a request does
            not log it again.
    """

    is_logged = False


class InputError(ResmgrError):
    """Invalid input: a configuration, an annotation, a command line."""


class PolicyError(ResmgrError):
    """The request is well formed and this node cannot grant it."""


class HostError(ResmgrError):
    """The node is not as expected: a kernel file is missing or has bad content."""


@dataclass(eq=False)
class BadListFormat(InputError):
    """Text is not a list of CPUs or nodes in the kernel's format."""

    text: str
    at: str

    def __str__(self) -> str:
        return f"not a CPU or node list: {self.text!r} (at {self.at!r})"


@dataclass(eq=False)
class BadMask(InputError):
    """Text is not a mask of CPUs or nodes in the kernel's format."""

    text: str

    def __str__(self) -> str:
        return f"not a mask of 32-bit hexadecimal words: {self.text!r}"


@dataclass(eq=False)
class BadQuantity(InputError):
    """Text is not a Kubernetes quantity, or not one that a node can have."""

    text: str
    why: str

    def __str__(self) -> str:
        return f"bad quantity {self.text!r}: {self.why}"
