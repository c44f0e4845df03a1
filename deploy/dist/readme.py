"""The README for package indexes, where links that are relative lead nowhere.

hatchling calls it for each build. The links become those of the release's tag below
``Repository`` of ``[project.urls]``, laid out as on GitHub. Without such a URL the path
of a link stands behind its text, as the source distribution has all these files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_FENCE: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_RELATIVE: Final = re.compile(
    r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!\w+:|#)(?P<path>[^)#\s]+)(?P<section>#[^)\s]*)?\)"
)


class ReadmeHook(MetadataHookInterface):
    """Sets ``readme``, which pyproject.toml states as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field to the README of the project's folder."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository", "")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": for_index(text, repository, metadata["version"]),
        }


def for_index(text: str, repository: str, version: str) -> str:
    """Return the README without relative links.

    Args:
        text: The README, in Markdown.
        repository: URL of the repository; empty if it has none.
        version: Of the release, whose tag is ``vVERSION``.
    """

    def with_address(link: re.Match[str]) -> str:
        picture, path = link["picture"], link["path"]
        place = f"{'raw' if picture else 'blob'}/v{version}/{path}"
        url = f"{repository.rstrip('/')}/{place}{link['section'] or ''}"
        return f"{picture}[{link['text']}]({url})"

    def with_path(link: re.Match[str]) -> str:
        words, path = link["text"], link["path"]
        return words if words == path else f"{words} ({path})"

    replacement = with_address if repository else with_path
    # Of the parts between fences, each second one is a block of code.
    parts = _FENCE.split(text)
    parts[::2] = [_RELATIVE.sub(replacement, part) for part in parts[::2]]
    return "".join(parts)
