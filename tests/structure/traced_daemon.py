"""A program: the daemon, which notes the functions it enters between two signals.

``python traced_daemon.py OUTPUT FLAG...``. The first SIGRTMIN begins; the second one
writes *OUTPUT*: a JSON list of ``[file, first line, qualified name]`` in the order in
which functions were entered first, and ``null`` where the first reply was written.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from nri_resmgr.cli.main import main

OUTPUT = Path(sys.argv[1])

entered: dict[CodeType | None, None] = {}


def note(frame: FrameType, event: str, _: Any) -> None:
    if event != "call":
        return
    code = frame.f_code
    # asyncio's module, so the name is the same however this program was started.
    if code.co_name == "write" and code.co_filename.endswith("selector_events.py"):
        entered.setdefault(None)
    entered.setdefault(code)


def toggle(_: int, __: object) -> None:
    if sys.getprofile() is None:
        sys.setprofile(note)
        return
    sys.setprofile(None)
    rows = [
        code and (code.co_filename, code.co_firstlineno, code.co_qualname)
        for code in entered
    ]
    partial = OUTPUT.with_suffix(".partial")
    partial.write_text(json.dumps(rows))
    partial.rename(OUTPUT)


signal.signal(signal.SIGRTMIN, toggle)
sys.exit(main(["run", *sys.argv[2:]]))
