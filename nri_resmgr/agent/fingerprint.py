"""The fingerprint by which a scheduler knows which pods a published object counts.

Source:
    ``podfingerprint`` of the topology-aware scheduling working group: prefix, version,
    and the hash of the sorted hashes of all pods.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from nri_resmgr.agent.xxhash64 import xxhash64

_HEAD: Final = "pfp0v001"


def fingerprint_of(pods: Iterable[tuple[str, str]]) -> str:
    """Return the fingerprint of pods, each a namespace and a name, in any order."""
    hashes = sorted(
        xxhash64(name.encode(), xxhash64(namespace.encode()))
        for namespace, name in pods
    )
    packed = struct.pack(f"<{len(hashes)}Q", *hashes)
    return f"{_HEAD}{xxhash64(packed):016x}"
