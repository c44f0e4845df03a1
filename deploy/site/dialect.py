"""Where Python-Markdown differs from CommonMark, in which the pages are written."""

from __future__ import annotations

import re
from typing import Final

from deploy.site.links import lines

_CODE: Final = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)")
_ITEM: Final = re.compile(r" *(?:[-*+]|\d+\.) +(?=\S)")
_DEEP: Final = " " * 4


def with_plain_bars(text: str) -> str:
    r"""Return a page whose tables have bars in code without a backslash.

    Tables of repositories need ``\|`` there, and show a bar; Python-Markdown shows
    both.
    """

    def plain(found: re.Match[str]) -> str:
        return found[0].replace("\\|", "|")

    return "".join(
        _CODE.sub(plain, line) if line.startswith("|") and not is_code else line
        for line, is_code in lines(text)
    )


def with_deep_items(text: str) -> str:
    """Return a page in which what belongs to an item of a list is four columns deep.

    In CommonMark it begins below the first letter of the item; for Python-Markdown such
    a paragraph, list or block of code would end the list. Nor does it see the next item
    right below a further paragraph of the last one, so there is an empty line between.
    """
    written: list[str] = []
    columns = [0]  # where the text of each open item begins
    was_code = False
    has_parts = False  # an empty line was in the last item
    for line, is_code in lines(text):
        if not line.strip():
            has_parts = True
            written.append(line)
            continue
        # A line of code may begin left of its fence.
        if not (was_code and is_code):
            indent = len(line) - len(line.lstrip(" "))
            while indent < columns[-1]:
                columns.pop()
        item = None if is_code else _ITEM.match(line)
        if item and has_parts and written[-1].strip():
            written.append("\n")
        own = re.sub(f"^ {{0,{columns[-1]}}}", "", line)
        written.append(_DEEP * (len(columns) - 1) + own)
        if item:
            columns.append(item.end())
            has_parts = False
        was_code = is_code
    return "".join(written)
