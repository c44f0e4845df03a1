"""Documents for programs: those of answers, and our list around them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from textwrap import indent
from typing import Final

API_VERSION: Final = "kubectl.nri-resmgr/v1"
"""Of the plugin's own documents.

A key that is removed, or changes its meaning, requires another version.
"""

_KIND: Final = "NodeAnswerList"

# Between documents of YAML.
_SEPARATOR: Final = re.compile(r"^---\n", re.MULTILINE)


def list_of(items: Sequence[str], form: str | None) -> str:
    r"""Format what `items_of` made for all nodes: a document, if the form is for those.

    >>> list_of(['{"node": "n1"}', '{"node": "n2"}'], "json").splitlines()[1:]
    ['{"node": "n1"},', '{"node": "n2"}', ']}']
    >>> list_of([], "yaml").splitlines()[1:]
    ['kind: NodeAnswerList', 'items: []']
    """
    if form == "json":
        head = json.dumps({"apiVersion": API_VERSION, "kind": _KIND}).removesuffix("}")
        lines = ",\n".join(items)
        return f'{head}, "items": [\n{lines}\n]}}\n'
    if form == "yaml":
        body = "\n" if items else " []\n"
        head = f"apiVersion: {API_VERSION}\nkind: {_KIND}\nitems:{body}"
        return "".join((head, *items))
    return "".join(items)


def items_of(node: str, text: str, form: str | None) -> list[str]:
    r"""Name the node of an answer: in an item for each document, or in a line above.

    >>> items_of("n1", '{"a": 1}', "json")
    ['{"node": "n1", "answer": {"a": 1}}']
    >>> items_of("n1", "a: 1\nb:\n- 2\n", "yaml")
    ['- node: "n1"\n  answer:\n    a: 1\n    b:\n    - 2\n']

    Raises:
        ValueError: It is to be JSON, and is not.
    """
    if form == "json":
        found = ({"node": node, "answer": one} for one in documents_in(text))
        return [json.dumps(one) for one in found]
    if form == "yaml":
        # In quotes: a node may be called 1 or null.
        head = f"- node: {json.dumps(node)}\n  answer:\n"
        parts = _SEPARATOR.split(text)
        return [head + indent(one, "    ") for one in parts if one.strip()]
    return [f"node {node}\n\n{text}\n"]


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
