"""The daemon, with its objects counted on a signal.

Run as ``python -m tests.soak.counted FILE run ...``: SIGUSR2 has it write the number of
objects of each type to the file.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
from collections import Counter
from pathlib import Path

from nri_resmgr.__main__ import main
from nri_resmgr.stub.service import give_back_memory


def count_into(path: Path) -> None:
    """Write how many objects of each type there are, all at once.

    What is free then goes back to the kernel: what stays resident is in use, or in
    pieces too small to be given back.
    """
    gc.collect()
    give_back_memory()
    kinds = Counter(type(one).__qualname__ for one in gc.get_objects())
    new = path.with_suffix(".new")
    new.write_text(json.dumps(kinds))
    new.replace(path)


if __name__ == "__main__":
    where = Path(sys.argv.pop(1))
    signal.signal(signal.SIGUSR2, lambda *_: count_into(where))
    sys.exit(main())
