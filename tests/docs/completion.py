"""The scripts of completion that the package installs, as the command prints them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from nri_resmgr.cli.completion.command import script_of

_FOLDER: Final = Path(__file__).parents[2] / "deploy" / "completion"

SCRIPTS: Final[Mapping[Path, Callable[[], str]]] = {
    _FOLDER / "nri-resmgr.bash": partial(script_of, "bash"),
    _FOLDER / "_nri-resmgr": partial(script_of, "zsh"),
}
"""How each script is written."""
