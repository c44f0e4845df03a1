"""A kubectl that plays the kubelet's part, and is the real one for all else.

Without a kubelet nothing can run in a pod. For pods that it knows this one runs what
``kubectl exec`` names with a daemon of this machine, as in the container, and prints
the daemon's log for ``kubectl logs``. Everything else is done by the real kubectl, exec
in other pods included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# The host's root in the container, by the manifests.
_HOST: Final = "--host-root=/host"
_PROGRAM: Final = """\
#!{python}
import sys

sys.path.insert(0, {root!r})
from tests.kubernetes.exec_double import play

sys.exit(play(sys.argv[1:], {real!r}, {folders!r}))
"""


def write_double(path: Path, real: Path, folders: Path) -> None:
    """Write the program.

    Args:
        path: Of the program, whose name is ``kubectl``.
        real: The real kubectl.
        folders: A file of JSON: the folders of daemons by ``NAMESPACE/POD``, each with
            ``run/control.sock``, ``host`` and ``log``. It is read at each run. The
            words of the last exec are in ``exec`` there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = _PROGRAM.format(
        python=sys.executable,
        root=str(Path(__file__).parents[2]),
        real=str(real),
        folders=str(folders),
    )
    path.write_text(text)
    path.chmod(0o755)


def play(words: Sequence[str], real: str, folders: str) -> int:
    """Run one command; return its exit status."""
    known = json.loads(Path(folders).read_text())
    command = next((one for one in words if one in ("exec", "logs")), "")
    namespace = _after(words, "--namespace")
    folder = next(
        (known[name] for word in words if (name := f"{namespace}/{word}") in known), ""
    )
    if not command or not folder:
        os.execv(real, [real, *words])  # noqa: S606 - the real one, as it is called
    if command == "logs":
        sys.stdout.write(Path(folder, "log").read_text())
        return 0
    assert _after(words, "--container") == "nri-resmgr"
    Path(folder, "exec").write_text(json.dumps(words))
    program, *inner = words[words.index("--") + 1 :]
    assert program == "nri-resmgr"
    status = subprocess.run(
        [
            *(sys.executable, "-m", "nri_resmgr"),
            *(f"--host-root={folder}/host" if one == _HOST else one for one in inner),
        ],
        env=os.environ
        | {
            "NRI_RESMGR_CONTROL_SOCKET": f"{folder}/run/control.sock",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
        check=False,
    ).returncode
    if status:
        print(f"command terminated with exit code {status}", file=sys.stderr)
    return status


def _after(words: Sequence[str], flag: str) -> str:
    return words[words.index(flag) + 1] if flag in words else ""
