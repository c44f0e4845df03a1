"""Links between the files of the repository, as its Markdown has them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Final

# A fence may stand in an item of a list.
_FENCE: Final = re.compile(r" *(`{3,}|~{3,})")
_LINK: Final = re.compile(r"(?<=\]\()([^)\s#:]+)(#[^)\s]*)?(?=\))")


def resolved(page: str, target: str) -> str:
    """Return the path in the repository that a link of a page leads to.

    Args:
        page: Path of the page in the repository.
        target: The link, without an anchor.
    """
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def linked(page: str, text: str) -> Iterator[str]:
    """Yield the paths in the repository that a page links, pictures among them."""
    for line, is_code in lines(text):
        if not is_code:
            for target, _ in _LINK.findall(line):
                yield resolved(page, target)


def with_links(text: str, change: Callable[[str], str]) -> str:
    """Return a page with each link to a file changed; anchors and code stay."""

    def changed(found: re.Match[str]) -> str:
        return change(found[1]) + (found[2] or "")

    return "".join(
        line if is_code else _LINK.sub(changed, line) for line, is_code in lines(text)
    )


def lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line of a page, and whether it belongs to a block of code."""
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if fence:
            yield line, True
            if found and found[1].startswith(fence):
                fence = ""
        else:
            fence = found[1] if found else ""
            yield line, bool(fence)
