"""The hand-over of the cluster's documents by files: from the agent to the daemon.

The agent, which has access to the API server and no privileges, writes files into a
folder of its own: `CONFIGURATION` and `ADJUSTMENTS`, and `CLAIMS` where it is asked for
some. The daemon, which has privileges and no network, follows them. Each is the text of
a document below a header in comments (`file`), which says of which object it is
(`cluster_object`).

Nothing here opens a file, knows YAML, or judges a document.
"""

from __future__ import annotations

from nri_resmgr.spool.cluster_object import ClusterObject
from nri_resmgr.spool.file import (
    ADJUSTMENTS,
    CLAIMS,
    CONFIGURATION,
    LARGEST,
    BadSpoolFile,
    BadSpoolHeader,
    SpoolFile,
    SpoolHeader,
    decode,
    encode,
)

__all__ = [
    "ADJUSTMENTS",
    "CLAIMS",
    "CONFIGURATION",
    "LARGEST",
    "BadSpoolFile",
    "BadSpoolHeader",
    "ClusterObject",
    "SpoolFile",
    "SpoolHeader",
    "decode",
    "encode",
]
