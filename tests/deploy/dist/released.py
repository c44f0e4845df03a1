"""Releases by ``make dist``'s script, of commits of this working copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.real_host.absent import give_up

ROOT: Final = Path(__file__).parents[3]
TIME: Final = 1_700_000_000  # of the commit
# Most files of a source distribution are tests, of which a build reads the lock only.
_LEFT_OUT: Final = "tests/"
_LOCK: Final = "tests/requirements.txt"


def commit(folder: Path, **changed: str) -> Path:
    """Commit a copy of the working copy, at a fixed time, into a new repository.

    Args:
        folder: Of the repository.
        changed: Texts to have in place of those of files, by their stems.
    """
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        give_up("a release is built of a checkout of git")
    listed = _git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if name.startswith(_LEFT_OUT) and name != _LOCK:
            continue
        if path.is_symlink() or path.exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / name, follow_symlinks=False)
    for stem, text in changed.items():
        [path] = (one for one in folder.iterdir() if one.stem == stem)
        path.write_text(text, encoding="utf-8")
    _git(folder, "init", "--quiet")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "All")
    return folder


def head_of(checkout: Path) -> str:
    """Return the hash of the last commit."""
    return _git(checkout, "rev-parse", "HEAD").strip()


def build(
    checkout: Path, folder: Path, *words: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Build a release without an image into *folder*."""
    return subprocess.run(
        [checkout / "deploy" / "dist" / "build.sh", folder, *words],
        env=os.environ | {"PYTHON": sys.executable, "IMAGE": "no"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _git(folder: Path, *words: str) -> str:
    names = ("AUTHOR", "COMMITTER")
    who = {f"GIT_{one}_NAME": "Test" for one in names}
    who |= {f"GIT_{one}_EMAIL": "test@example.com" for one in names}
    who |= {f"GIT_{one}_DATE": f"{TIME} +0000" for one in names}
    environment: Mapping[str, str] = os.environ | who
    return subprocess.run(
        ["git", "-C", folder, *words],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
