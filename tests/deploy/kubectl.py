"""What ``kubectl`` makes of the manifests."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from tests.kubernetes.programs import kubectl
from tests.real_host.absent import give_up
from tests.real_host.debian import PackageUnavailable

MANIFESTS: Final = Path(__file__).parents[2] / "deploy" / "kubernetes"
OVERLAYS: Final = tuple(sorted(path.name for path in MANIFESTS.glob("overlays/*")))
OPTIONS: Final = tuple(sorted(path.name for path in MANIFESTS.glob("options/*")))
COMPONENTS: Final = tuple(sorted(path.name for path in MANIFESTS.glob("components/*")))


@cache
def rendered(folder: Path) -> tuple[dict[str, Any], ...]:
    """Return the objects of a kustomization, as they would be applied."""
    done = subprocess.run(
        [_kubectl(), "kustomize", folder], capture_output=True, text=True, check=False
    )
    # Warnings of what is deprecated are on standard error, too.
    assert (done.returncode, done.stderr) == (0, "")
    return tuple(yaml.safe_load_all(done.stdout))


def with_component(folder: Path, *names: str) -> tuple[dict[str, Any], ...]:
    """Return the base with a component or more, from a kustomization of our own.

    Args:
        folder: An empty one, for the kustomization.
        names: Of the components.
    """
    return with_parts(folder, *(MANIFESTS / "components" / name for name in names))


def with_parts(
    folder: Path, *parts: Path, base: str = "base"
) -> tuple[dict[str, Any], ...]:
    """Return a base with components, from a kustomization of our own.

    Args:
        folder: An empty one, for the kustomization.
        parts: Folders of components.
        base: ``base``, or ``cluster``, which has the agent, too.
    """
    text = {
        "resources": [os.path.relpath(MANIFESTS / base, folder)],
        "components": [os.path.relpath(one, folder) for one in parts],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(text))
    return rendered(folder)


def of_kind(objects: tuple[dict[str, Any], ...], kind: str) -> dict[str, Any]:
    """Return the only object of a kind."""
    (found,) = (one for one in objects if one["kind"] == kind)
    return found


@cache
def _kubectl() -> Path:
    try:
        return kubectl()
    except PackageUnavailable as reason:
        give_up(str(reason))
