"""The tables of reasons, each with its sentence."""

from __future__ import annotations

from collections.abc import Mapping

from nri_resmgr.policy.rules import Rule
from nri_resmgr.policy.sentences import (
    DECIDED_SENTENCES,
    RULE_SENTENCES,
    TYPE_SENTENCES,
)
from tests.docs.markdown import code, escaped, table


def _words(sentences: Mapping[Rule, str] | Mapping[str, str]) -> str:
    rows = ((code(str(word)), escaped(text)) for word, text in sentences.items())
    return table(("word", "meaning"), rows)


def rules(_: str) -> str:
    """Write the rules by which containers are placed."""
    return _words(RULE_SENTENCES)


def criteria(_: str) -> str:
    """Write the criteria by which a pool is chosen."""
    return _words(DECIDED_SENTENCES)


def types(_: str) -> str:
    """Write the reasons for the type of a balloon."""
    return _words(TYPE_SENTENCES)
