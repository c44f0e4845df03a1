"""The page for users lists the metrics that there are."""

from __future__ import annotations

import re
from pathlib import Path

from nri_resmgr.app.metric_table import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "insight.md"


def test_the_page_has_every_metric_with_its_labels() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (counter|gauge|histogram) \| (.*?) \| (.*) \|$",
        PAGE.read_text(),
        re.MULTILINE,
    )
    expected = [
        (one.name, one.kind.value, ", ".join(f"`{x}`" for x in one.labels), one.help)
        for one in METRICS
    ]

    assert rows == expected
