"""The command, for ``python -m nri_resmgr``."""

from __future__ import annotations

import sys

from nri_resmgr.cli.main import main

sys.exit(main())
