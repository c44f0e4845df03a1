"""What can be wrong with an annotation that tells of resources."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values import InputError


@dataclass(eq=False)
class BadResources(InputError):
    """A pod's annotation does not say what its containers ask for.

    Attributes:
        pod: ``namespace/name``.
        key: The annotation's.
        at: Where in it, ``containers.web.requests.cpu``; empty for all of it.
        why: What is wrong, and what would be right.
    """

    pod: str
    key: str
    at: str
    why: str

    def __str__(self) -> str:
        place = f" at {self.at}" if self.at else ""
        return f"pod {self.pod}, annotation {self.key}{place}: {self.why}"
