"""``nri-resmgr convert``: configurations of other resource managers as ours."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.cli.documents import add_files, name_of, read_document
from nri_resmgr.cli.flags import Parser
from nri_resmgr.config.migrate import convert_cmk, convert_text
from nri_resmgr.host.cmk_tree import read_cmk_tree
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.policies import read_config
from nri_resmgr.values import InputError

_EXAMPLES: Final = """\
examples:
  nri-resmgr convert fallback.cfg > my.yaml              of CRI Resource Manager
  nri-resmgr convert /var/lib/kubelet/config.yaml        of the kubelet's managers
  nri-resmgr convert /etc/default/kubelet                of its flags, also of a unit
  nri-resmgr convert /etc/cmk                            pools of CMK, also a file
  nri-resmgr convert deployment.yaml                     annotations of pods
  kubectl get cm -n kube-system cri-resmgr-config.default -o yaml | nri-resmgr convert -

The new documents are written to standard output, with a comment for each thing that has
no counterpart; `check` validates them for a machine. Documents of nri-plugins are valid
here, and stay as they are. The file is not changed. See docs/migrate.md.

exit status: 0 converted; 2 a file cannot be read or converted, nothing is written
"""


@dataclass(eq=False)
class CannotConvert(InputError):
    """A file has a mistake, or is of no known origin."""

    path: Path
    mistake: InputError

    def __str__(self) -> str:
        return f"cannot convert {self.path}: {self.mistake}"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Convert configurations of CRI Resource Manager and of the kubelet's managers, "
        "pools of CMK, and annotations in manifests."
    )
    parser.epilog = _EXAMPLES
    add_files(parser, "a file of documents, or CMK's folder")


def run(options: argparse.Namespace) -> int:
    """Convert all files, then print the results."""
    # All or nothing: a redirected half would be a valid document.
    found = [_converted(path) for path in options.files]
    marker = "---\n"
    first, *others = found
    print(first, *(text.removeprefix(marker) for text in others), sep=marker, end="")
    return 0


def _converted(path: Path) -> str:
    try:
        if path.is_dir():
            return convert_cmk(read_cmk_tree(path)).text(read_config)
        return convert_text(read_document(path).replace("\r\n", "\n"), read_config)
    except UnreadableFile:
        raise
    except InputError as error:
        raise CannotConvert(name_of(path), error) from None
