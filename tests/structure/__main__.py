"""``make structure``: measures, and writes the table into docs/architecture.md.

With ``--before`` it writes the figures that later ones are compared with instead.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypedDict

from tests.docs.markdown import table
from tests.docs.regions import rewritten
from tests.structure.crossing import CONTAINERS, Crossing, crossings
from tests.structure.source import (
    ROOT,
    arrows_of_app,
    direct,
    floors,
    late_imports,
    lines_by_package,
    uses_of_any,
)

_BEFORE: Final = Path(__file__).with_name("before.json")
_PAGE: Final = ROOT / "docs" / "architecture.md"

_REGION: Final = "structure"
_REPLY: Final = "CreateContainer, up to the reply"
_ALL: Final = "CreateContainer, with what follows the reply"
_LINES: Final = "lines"

_HOW: Final = f"""\
A CreateContainer is one of a Burstable container with {CONTAINERS} others, by the
topology-aware policy on 112 CPUs, the second of two equal ones. Functions are code
objects (lambdas, comprehensions and generated methods of values included), classes are
those with a method that is entered, lines those of the functions without blank ones and
docstrings. `Any` counts uses of the name but for imports; late imports are statements
inside of functions. Arrows are imports, late ones included, between the direct children
of `nri_resmgr/app`, and floors the longest chain of them; direct arrows lead where no
longer way leads. Lines by package are those that are not blank. Generated code is left
out everywhere, and `plugins` and `tests` are."""


class Figures(TypedDict):
    """As in before.json."""

    commit: str
    figures: dict[str, int]


def main(arguments: Sequence[str]) -> None:
    """Measure and write."""
    figures: Figures = {"commit": _commit(), "figures": _measure()}
    if arguments == ["--before"]:
        _BEFORE.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        return
    body = _body(json.loads(_BEFORE.read_text(encoding="utf-8")), figures)
    print(body)
    text = _PAGE.read_text(encoding="utf-8")
    new = rewritten(text, {_REGION: lambda _: body}, marker="measured")
    _PAGE.write_text(new, encoding="utf-8")


def _measure() -> dict[str, int]:
    arrows = arrows_of_app()
    reply, everything = crossings()
    return {
        **_of_crossing(_REPLY, reply),
        **_of_crossing(_ALL, everything),
        "uses of `Any`": uses_of_any(),
        "late imports": late_imports(),
        "arrows inside `app`": len(arrows),
        "direct arrows inside `app`": len(direct(arrows)),
        "floors of `app`": floors(arrows),
        **_of_packages(),
    }


def _of_crossing(what: str, found: Crossing) -> Mapping[str, int]:
    return {f"{what}: {name}": count for name, count in found._asdict().items()}


def _of_packages() -> dict[str, int]:
    by_package = lines_by_package()
    found = {f"{_LINES} in all": by_package.total()}
    for name in sorted(by_package):
        found[f"{_LINES}, `{name}`"] = by_package[name]
    return found


def _body(before: Figures, now: Figures) -> str:
    header = ("what", f"before ({before['commit']})", f"now ({now['commit']})")
    rows = _rows(before["figures"], now["figures"])
    return f"{table(header, rows)}\n\n{_HOW}"


def _rows(
    before: Mapping[str, int], now: Mapping[str, int]
) -> Iterator[tuple[str, str, str]]:
    for what in dict.fromkeys((*before, *now)):
        yield what, _cell(before.get(what)), _cell(now.get(what))


def _cell(figure: int | None) -> str:
    return "" if figure is None else f"{figure:,}"


def _commit() -> str:
    command = ("git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*")
    return subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main(sys.argv[1:])
