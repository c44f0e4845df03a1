"""A process that sets host files and is killed at one of its writes."""

from __future__ import annotations

import json
import sys

from nri_resmgr.host.boot_journal import boot_of
from nri_resmgr.host.knobs.files import WritableHostTree
from nri_resmgr.host.knobs.journal import KnobJournal
from nri_resmgr.host.knobs.knobs import Knobs
from tests.host.knob_kernel import Mortal, MortalFiles, killed, mortal_state


def main() -> None:
    """Apply mappings; print how many writes there were, if it comes to that."""
    root, folder, left, is_late, wishes = sys.argv[1:]
    mortal = Mortal(int(left), is_late == "late", killed)
    files = WritableHostTree(root)
    state = mortal_state(folder, mortal)
    knobs = Knobs(MortalFiles(files, mortal), KnobJournal(state, boot_of(files)))
    for desired in json.loads(wishes):
        knobs.apply(desired)
    print(-1 - mortal.left)


if __name__ == "__main__":
    main()
