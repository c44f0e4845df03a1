"""What a kind of document says whose modules only load where a document is of it."""

from __future__ import annotations

from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen


@frozen
class LateConfig(ByContent):
    """The spec of a document of a rarer kind; the start path knows no more of it.

    Attributes:
        not_in_force: Paths of what was read, found right, and has no effect.
    """

    not_in_force: tuple[str, ...] = ()
