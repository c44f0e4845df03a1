"""The part of a document that is about classes of cache, bandwidth and block I/O."""

from __future__ import annotations

from typing import Any, Final

from nri_resmgr.config.table import Table

CONTROL: Final = "control"


def read_control(spec: Table, *others: str) -> dict[str, Any]:
    """Read ``control`` into fields of `PolicyConfig`.

    Args:
        spec: Of a document of any kind.
        others: Keys beside ours, which somebody else reads.

    Raises:
        BadSetting: The first mistake.
    """
    found: dict[str, Any] = {}
    control = spec.table(CONTROL, "rdt", "blockio", *others)
    # Few documents have any of these.
    if "rdt" in control.rows:
        from nri_resmgr.config.rdt_use import read_rdt_use

        found["rdt"] = read_rdt_use(control)
    if "blockio" in control.rows:
        from nri_resmgr.config.blockio import read_block_io_control

        use = read_block_io_control(control)
        found["blockio"] = use if use.enabled else None
    return found
