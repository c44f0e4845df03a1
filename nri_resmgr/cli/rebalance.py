"""``nri-resmgr rebalance``: move running containers to better places."""

from __future__ import annotations

import argparse
from typing import Final

from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.output import add_client_flags, is_document, print_document
from nri_resmgr.cli.state_texts import pending_text
from nri_resmgr.cli.tables import format_table
from nri_resmgr.control.client import Client
from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.sentences import DECIDED_SENTENCES, RULE_SENTENCES
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable_data

_EXAMPLES: Final = """\
examples:
  nri-resmgr rebalance --dry-run       show which containers would move, and why
  nri-resmgr rebalance --at-most 1     move the first of these

With `rebalance: {interval: 10m}` in the document, the daemon also does it periodically.
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Move running containers that share CPUs to where they would be placed now, "
        "and show which ones moved, and why. It takes a second: the daemon measures "
        "how busy the CPUs are."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--at-most",
        type=int,
        metavar="N",
        help="the most containers that move; default is atMost of the document, or 5",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would move, and move nothing"
    )
    add_client_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Request it; the daemon's refusal is an error."""
    query = {"at-most": str(options.at_most)} if options.at_most is not None else {}
    query |= {"dry-run": "1"} if options.dry_run else {}
    found = Client(options.control_socket).post("/v1/rebalance", **query)
    if is_document(options.output):
        print_document(found, options.output)
    else:
        print(rebalanced_text(printable_data(found)))
    return 0


def rebalanced_text(found: JsonObject) -> str:
    """Format the containers that moved as a table, with the reasons below."""
    moved = found["containers"]
    if not moved:
        return "no container has a better place"
    rows = [
        (
            one.get("title", one["id"]),
            one.get("pool", "-"),
            one.get("cpus", "-"),
            one.get("mems", "-"),
            _why(one),
        )
        for one in moved
    ]
    table = format_table(("container", "pool", "CPUs", "nodes", "why"), rows)
    count = count_text(len(moved), "container")
    if found["dryRun"]:
        return f"{table}\n{count} would move"
    waits = pending_text(found) or "in force: no update is pending"
    return f"{table}\n{count} moved; {waits}"


def _why(one: JsonObject) -> str:
    why = DECIDED_SENTENCES.get(one.get("decided", ""))
    if why is None or one["rule"] != Rule.REBALANCED.value:
        why = RULE_SENTENCES[Rule(one["rule"])]
    return "; ".join(part for part in (why, one.get("detail", "")) if part)
