"""Queries daemons: one on the user's terminal, or all of them side by side."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

from nri_resmgr.kubectl.client import NAME, Kubectl
from nri_resmgr.kubectl.daemons import Daemon
from nri_resmgr.kubectl.documents import items_of, list_of
from nri_resmgr.kubectl.errors import KubectlFailed, PluginError

# Each is a process and a connection; the API server serves hundreds.
_AT_A_TIME: Final = 8


@dataclass(frozen=True)
class Query:
    """A command of ``nri-resmgr`` that queries the daemon.

    Attributes:
        words: The command and its arguments.
        form: What ``-o`` has: ``json``, ``yaml`` or another one for people.
        any_node: Whether it is answered if one of many nodes answers.
    """

    words: tuple[str, ...]
    form: str | None = None
    any_node: bool = False


def ask(kubectl: Kubectl, daemon: Daemon, query: Query) -> int:
    """Run a query on the user's terminal, if there is one; return its exit status.

    Raises:
        NoKubectl: kubectl cannot be run.
    """
    # Then Ctrl-C ends the command there, too, and it knows the width of the lines.
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return kubectl.pass_through(*_words(daemon, query, terminal=terminal))


def ask_all(
    kubectl: Kubectl, daemons: Mapping[str, Daemon | PluginError], query: Query
) -> int:
    """Print the answers of all nodes, in the order of *daemons*: one list for programs.

    Returns:
        0, or the exit status of the first node that failed.
    """
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        found = pool.map(partial(_items, kubectl, query), daemons.items())
        answers = dict(zip(daemons, found, strict=True))
    failed = {
        node: answer
        for node, answer in answers.items()
        if isinstance(answer, PluginError)
    }
    items = [
        item
        for answer in answers.values()
        if not isinstance(answer, PluginError)
        for item in answer
    ]
    print(list_of(items, query.form), end="")
    if query.any_node and len(failed) < len(answers):
        return 0
    for node, error in failed.items():
        print(f"{NAME}: node {node}: {error}", file=sys.stderr)
    return next((error.status for error in failed.values()), 0)


def _items(
    kubectl: Kubectl, query: Query, found: tuple[str, Daemon | PluginError]
) -> list[str] | PluginError:
    """Return what is printed of a node, or why it has no answer."""
    node, daemon = found
    if isinstance(daemon, PluginError):
        return daemon
    try:
        text = kubectl.output(*_words(daemon, query)).decode(errors="replace")
        return items_of(node, text, query.form)
    except PluginError as error:
        return error
    except (ValueError, RecursionError):
        return KubectlFailed("the answer is not JSON")


def _words(daemon: Daemon, query: Query, *, terminal: bool = False) -> tuple[str, ...]:
    flags = daemon.flags("--control-socket")
    return daemon.exec_words(*query.words, *flags, terminal=terminal)
