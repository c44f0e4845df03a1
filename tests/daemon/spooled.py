"""An agent's side of the spool folder, for tests."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.spool import ADJUSTMENTS, CONFIGURATION, SpoolHeader, encode

NODE = "worker-1"


def spool(folder: Path) -> Path:
    """Make a spool folder."""
    path = folder / "spool"
    path.mkdir(0o755, exist_ok=True)
    return path


def put(path: Path, content: bytes) -> None:
    """Write a file as an agent does: atomically."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    new.chmod(0o644)
    new.rename(path)


def hand_over_configuration(
    folder: Path, text: str, generation: int = 1, name: str = "node.worker-1"
) -> None:
    """Hand over a document."""
    header = SpoolHeader(
        "TopologyAwarePolicy",
        name,
        "kube-system",
        uid=f"uid-{name}",
        generation=generation,
        node=NODE,
    )
    put(folder / CONFIGURATION, encode(header, text))


def hand_over_adjustments(folder: Path, text: str, node: str = NODE) -> None:
    """Hand over all adjustments."""
    put(folder / ADJUSTMENTS, encode(SpoolHeader("AdjustmentList", node=node), text))
