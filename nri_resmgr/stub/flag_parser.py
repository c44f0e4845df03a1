"""The parser of plugins' flags, apart from them as few plugins are given any."""

from __future__ import annotations

import argparse
from typing import NoReturn

from nri_resmgr.stub.flags import BadFlag


class FlagParser(argparse.ArgumentParser):
    """Has one sentence for a mistake, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Raise `BadFlag`."""
        raise BadFlag(message)
