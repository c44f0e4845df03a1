"""Whether the cluster's schedulers can read what the node can grant."""

from __future__ import annotations

from typing import Final

import msgspec


class Publication(msgspec.Struct, frozen=True):
    """Whether what the node can grant is published.

    Attributes:
        reason: A word in CamelCase.
        why: A sentence.
    """

    is_published: bool
    reason: str
    why: str


PUBLISHED: Final = Publication(
    True, "Published", "schedulers can read what the node can grant"
)
