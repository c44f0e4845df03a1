"""Answers of several nodes, as documents that name the node of each."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.cli.output import document_text, each_text
from nri_resmgr.kubectl.asking import of_node
from tests.examples import examples

VALUES = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(st.text(), VALUES, min_size=1)
NODES = st.sampled_from(["node-a", "1", "1e3", "null", "on"])


def parsed(text: str, form: str) -> list[Any]:
    if form == "json":
        return [json.loads(line) for line in text.splitlines()]
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize("form", ["json", "yaml"])
@examples(0.5)
@given(NODES, st.lists(DOCUMENTS, min_size=1, max_size=3))
def test_each_document_names_its_node(
    form: str, node: str, documents: list[dict[str, Any]]
) -> None:
    one = f"{document_text(documents[0], form)}\n"
    several = "".join(f"{each_text(document, form)}\n" for document in documents)

    found = parsed(of_node(node, one, form) + of_node(node, several, form), form)

    assert found == [
        {"node": node, "answer": document} for document in (documents[0], *documents)
    ]


def test_tables_are_below_the_name_of_their_node() -> None:
    assert of_node("node-a", "pool\n", None) == "node node-a\n\npool\n\n"
