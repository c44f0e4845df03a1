"""Metrics with versions as labels: of the daemon and of the runtime."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import google.protobuf

from nri_resmgr.app.metrics import table
from nri_resmgr.app.metrics.text import Series
from nri_resmgr.stub.runtime_info import RuntimeInfo


def series_of_versions(version: str, runtime: RuntimeInfo) -> Iterator[Series]:
    """Yield the daemon's version, and that of the runtime of a session."""
    versions = (version, platform.python_version(), google.protobuf.__version__)
    yield Series(table.BUILD, {versions: 1})
    if runtime.name:
        labels = (runtime.name, runtime.version, str(runtime.level or ""))
        yield Series(table.RUNTIME, {labels: 1})
