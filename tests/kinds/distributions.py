"""Installed packages with entry points, as an installer leaves them in a folder."""

from __future__ import annotations

import tomllib
from pathlib import Path


def install(folder: Path, pyproject: str, **modules: str) -> None:
    """Write the metadata that *pyproject* asks for, and modules beside it."""
    project = tomllib.loads(pyproject)["project"]
    name, version = project["name"], project["version"]
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    )
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{key} = {at}" for key, at in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
