"""How the plugin behaves on its node, whatever the policy is."""

from __future__ import annotations

from typing import Final

from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen


@frozen
class Conduct(ByContent):
    """What the command line says besides the policy's configuration.

    Attributes:
        dry_run: Decide and report, but adjust nothing.
        run_dir: Where containers' files of what they have are; empty for none.
        testing: Whether annotations may hand in topology hints.
    """

    dry_run: bool = False
    run_dir: str = ""
    testing: bool = False


USUAL: Final = Conduct()
"""Of a plugin that is told nothing else."""
