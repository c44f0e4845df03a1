from __future__ import annotations

import re
from pathlib import Path

from nri_resmgr.policy.affinity import Operator

DOCS = (Path(__file__).parents[2] / "docs" / "annotations.md").read_text()


def test_every_operator_is_explained() -> None:
    rows = re.findall(r"^\| (`[A-Z][^|]*) \| \w+ \| ", DOCS, re.MULTILINE)

    explained = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    assert explained == {operator.value for operator in Operator} | {"NotExists"}
