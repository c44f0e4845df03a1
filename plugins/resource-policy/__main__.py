"""The resource policy as a plugin: runs the command ``nri-resmgr run``."""

from __future__ import annotations

import sys

from nri_resmgr.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
