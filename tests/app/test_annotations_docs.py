from __future__ import annotations

import re
from pathlib import Path

from nri_resmgr.app.annotations.keys import KEYS, Target
from nri_resmgr.policy.affinity import Operator

DOCS = (Path(__file__).parents[2] / "docs" / "annotations.md").read_text()


def test_the_table_of_keys_is_that_of_the_code() -> None:
    rows = re.findall(
        r"^\| `([a-z.-]+)` \| .+ \| (soft|strict) \| (yes|no) \| ", DOCS, re.MULTILINE
    )

    assert {key: (mistakes, force) for key, mistakes, force in rows} == {
        name: (
            "strict" if key.strict else "soft",
            "no" if key.target is Target.PENDING else "yes",
        )
        for name, key in KEYS.items()
    }


def test_every_operator_is_explained() -> None:
    rows = re.findall(r"^\| (`[A-Z][^|]*) \| \w+ \| ", DOCS, re.MULTILINE)

    explained = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    assert explained == {operator.value for operator in Operator} | {"NotExists"}
