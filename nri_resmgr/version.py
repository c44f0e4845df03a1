"""Which version of ours this is."""

from __future__ import annotations

from functools import cache


@cache
def our_version() -> str:
    """Return the version that is installed; empty in a checkout that is not.

    The first call reads the metadata of packages: 10 ms.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("nri-resmgr")
    except PackageNotFoundError:
        return ""
