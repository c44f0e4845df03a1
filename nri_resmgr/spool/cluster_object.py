"""An object of the cluster that a document was made of."""

from __future__ import annotations

import msgspec

from nri_resmgr.spool.file import SpoolFile


class ClusterObject(msgspec.Struct, frozen=True):
    """An object of the cluster.

    Attributes:
        digest: SHA-256 of the document that was handed over for it; of an adjustment
            empty.
    """

    kind: str
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    digest: str = ""

    def __str__(self) -> str:
        path = f"{self.namespace}/{self.name}".strip("/")
        return f"{self.kind} {path}".strip()

    @classmethod
    def of(cls, file: SpoolFile) -> ClusterObject:
        """Return the object that a file is made of."""
        head = file.header
        return cls(
            head.kind, head.name, head.namespace, head.uid, head.generation, file.digest
        )
