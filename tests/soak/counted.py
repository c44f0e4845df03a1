"""The daemon, with its objects counted on a signal.

Run as ``python -m tests.soak.counted FILE run ...``: on SIGRTMIN, it writes the number
of objects of each type to the file.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
from collections import Counter
from pathlib import Path

from nri_resmgr.__main__ import main


def count_into(path: Path) -> None:
    """Write how many objects of each type there are, all at once.

    What is free then goes back to the kernel: what stays resident is in use, or in
    pieces too small to be given back.
    """
    # Late: an import of asyncio before `main` would bring TLS, 4 MiB.
    from nri_resmgr.stub.malloc import give_back_memory

    gc.collect()
    give_back_memory()
    kinds = Counter(type(one).__qualname__ for one in gc.get_objects())
    new = path.with_suffix(".new")
    new.write_text(json.dumps(kinds))
    new.replace(path)


if __name__ == "__main__":
    # An installed daemon has neither: structlog imports what it finds, 7 MiB.
    sys.modules |= {"rich": None, "better_exceptions": None}  # type: ignore[dict-item]
    where = Path(sys.argv.pop(1))
    signal.signal(signal.SIGRTMIN, lambda *_: count_into(where))
    sys.exit(main())
