"""Options of a runtime that launches plugins of a test."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.testing import RuntimeOptions


def launching(directory: Path) -> RuntimeOptions:
    """Return options of a runtime that launches what is in ``plugins``.

    Their configurations are in ``conf.d``, and what they print is in ``output``.
    """
    return RuntimeOptions(
        plugin_folder=directory / "plugins",
        config_folder=directory / "conf.d",
        plugin_output=directory / "output",
        registration_timeout=20.0,  # a busy machine starts Python slowly
        request_timeout=10.0,
    )
