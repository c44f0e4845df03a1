"""Answers of several nodes: one list for programs, which names the node of each."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.cli.output import document_text, each_text
from nri_resmgr.kubectl.documents import items_of, list_of
from tests.examples import examples

VALUES = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(st.text(), VALUES, min_size=1)
NODES = st.sampled_from(["node-a", "1", "1e3", "null", "on"])


def parsed(text: str, form: str) -> Any:
    return json.loads(text) if form == "json" else yaml.safe_load(text)


@pytest.mark.parametrize("form", ["json", "yaml"])
@examples(0.5)
@given(
    st.dictionaries(
        NODES, st.lists(DOCUMENTS, min_size=1, max_size=3), min_size=0, max_size=2
    )
)
def test_a_list_has_all_answers_with_their_nodes(
    form: str, answers: dict[str, list[dict[str, Any]]]
) -> None:
    items = [
        item
        for node, [first, *more] in answers.items()
        # As nri-resmgr prints one document, and as it prints one of several.
        for text in (
            f"{document_text(first, form)}\n",
            "".join(f"{each_text(one, form)}\n" for one in more),
        )
        for item in items_of(node, text, form)
    ]

    found = parsed(list_of(items, form), form)

    assert found == {
        "apiVersion": "kubectl.nri-resmgr/v1",
        "kind": "NodeAnswerList",
        "items": [
            {"node": node, "answer": document}
            for node, documents in answers.items()
            for document in documents
        ],
    }


def test_tables_are_below_the_names_of_their_nodes() -> None:
    tables = {"node-a": "pool\n", "node-b": "none\n"}
    items = [item for pair in tables.items() for item in items_of(*pair, None)]

    assert list_of(items, None) == "node node-a\n\npool\n\nnode node-b\n\nnone\n\n"
