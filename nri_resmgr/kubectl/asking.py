"""Queries daemons: one on the user's terminal, or all of them side by side."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from textwrap import indent
from typing import Final

from nri_resmgr.kubectl.client import NAME, Kubectl
from nri_resmgr.kubectl.daemons import Daemon
from nri_resmgr.kubectl.errors import KubectlFailed, PluginError

# Each is a process and a connection; the API server serves hundreds.
_AT_A_TIME: Final = 8

# Between documents of YAML.
_SEPARATOR: Final = re.compile(r"^---\n", re.MULTILINE)


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
    """Print the answers of all nodes, in the order of *daemons*.

    Returns:
        0, or the exit status of the first node that failed.
    """
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        answers = list(pool.map(partial(_answer, kubectl, query), daemons.items()))
    for answer in answers:
        if isinstance(answer, str):
            print(answer, end="")
    failed = {
        node: answer
        for node, answer in zip(daemons, answers, strict=True)
        if isinstance(answer, PluginError)
    }
    if query.any_node and len(failed) < len(answers):
        return 0
    for node, error in failed.items():
        print(f"{NAME}: node {node}: {error}", file=sys.stderr)
    return next((error.status for error in failed.values()), 0)


def _answer(
    kubectl: Kubectl, query: Query, found: tuple[str, Daemon | PluginError]
) -> str | PluginError:
    """Return what is printed of a node, or why it has no answer."""
    node, daemon = found
    if isinstance(daemon, PluginError):
        return daemon
    try:
        text = kubectl.output(*_words(daemon, query)).decode(errors="replace")
        return of_node(node, text, query.form)
    except PluginError as error:
        return error
    except (ValueError, RecursionError):
        return KubectlFailed("the answer is not JSON")


def _words(daemon: Daemon, query: Query, *, terminal: bool = False) -> tuple[str, ...]:
    flags = daemon.flags("--control-socket")
    return daemon.exec_words(*query.words, *flags, terminal=terminal)


def of_node(node: str, text: str, form: str | None) -> str:
    r"""Name the node of an answer: in each document, or in a line above.

    >>> of_node("n1", '{"a": 1}', "json")
    '{"node": "n1", "answer": {"a": 1}}\n'
    >>> of_node("n1", "a: 1\nb:\n- 2\n", "yaml")
    '---\nnode: "n1"\nanswer:\n  a: 1\n  b:\n  - 2\n'

    Raises:
        ValueError: It is to be JSON, and is not.
    """
    if form == "json":
        documents = ({"node": node, "answer": one} for one in documents_in(text))
        return "".join(f"{json.dumps(one)}\n" for one in documents)
    if form == "yaml":
        # In quotes: a node may be called 1 or null.
        head = f"---\nnode: {json.dumps(node)}\nanswer:\n"
        parts = _SEPARATOR.split(text)
        return "".join(head + indent(one, "  ") for one in parts if one.strip())
    return f"node {node}\n\n{text}\n"


def documents_in(text: str) -> Iterator[object]:
    r"""Yield the JSON documents that follow each other in a text.

    >>> list(documents_in('{"a": 1}\n{"b":\n 2}\n'))
    [{'a': 1}, {'b': 2}]

    Raises:
        ValueError: It is not JSON.
    """
    decoder, at = json.JSONDecoder(), 0
    while rest := text[at:].lstrip():
        document, at = decoder.raw_decode(text, len(text) - len(rest))
        yield document
