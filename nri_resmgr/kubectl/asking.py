"""Queries daemons: one on the user's terminal, or all of them side by side."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from nri_resmgr.kubectl.all_nodes import on_all, report_failures
from nri_resmgr.kubectl.client import Kubectl
from nri_resmgr.kubectl.daemons import Daemon
from nri_resmgr.kubectl.documents import items_of, list_of
from nri_resmgr.kubectl.errors import KubectlFailed, PluginError


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
    answers = on_all(daemons, partial(_items, kubectl, query))
    items = [
        item
        for answer in answers.values()
        if not isinstance(answer, PluginError)
        for item in answer
    ]
    print(list_of(items, query.form), end="")
    return report_failures(answers, any_node=query.any_node)


def _items(kubectl: Kubectl, query: Query, daemon: Daemon) -> list[str]:
    """Return what is printed of a node.

    Raises:
        PluginError: It has no answer.
    """
    text = kubectl.output(*_words(daemon, query)).decode(errors="replace")
    try:
        return items_of(daemon.node, text, query.form)
    except (ValueError, RecursionError):
        raise KubectlFailed("the answer is not JSON") from None


def _words(daemon: Daemon, query: Query, *, terminal: bool = False) -> tuple[str, ...]:
    flags = daemon.flags("--control-socket")
    return daemon.exec_words(*query.words, *flags, terminal=terminal)
