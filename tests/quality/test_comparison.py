"""The page counts where policies are worse than the kubelet, over its tables."""

from __future__ import annotations

from tests.docs.markdown import table
from tests.docs.regions import regions
from tests.quality.__main__ import AGAINST_KUBELET, PAGE, QUALITY
from tests.quality.comparison import against_kubelet


def test_the_page_has_the_counts_of_its_tables() -> None:
    committed = regions(PAGE.read_text(encoding="utf-8"), marker="measured")

    assert committed[AGAINST_KUBELET].strip() == against_kubelet(committed[QUALITY])


def test_worse_is_more_or_less_by_what_is_measured() -> None:
    policies = ("topology-aware", "balloons", "static", "static-plus")
    first = dict.fromkeys(policies, ("9", "2", "95.0 %"))
    second = dict.fromkeys(policies, ("8", "0", "99.5 %"))
    kubelet = {"kubelet, best-effort": ("9", "1", "99.0 %")}
    header = ("placed by", "containers", "refused", "in one node")
    tables = (
        f"### {name}\n\n{table(header, [(who, *one) for who, one in rows.items()])}"
        for name, rows in {"a": first | kubelet, "b": second | kubelet}.items()
    )

    assert against_kubelet("\n\n".join(tables)) == table(
        ("worse, of 2 tables", *policies),
        [
            ("refused", *["1, by up to 1"] * 4),
            ("in one node", *["1, by up to 4 points"] * 4),
        ],
    )
