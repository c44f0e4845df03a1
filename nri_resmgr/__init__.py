"""Node resource manager for Kubernetes, an NRI plugin of containerd and CRI-O."""

from __future__ import annotations

__version__: str
"""The installed version; empty in a checkout without installation."""


def __getattr__(name: str) -> str:
    if name == "__version__":
        # Late: it is read from files of the installation, which no start needs.
        from nri_resmgr.version import our_version

        return our_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
