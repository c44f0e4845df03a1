"""Hooks of MkDocs: the pages of the site are files of the repository.

They have the paths that they have there, so that links between them lead where they
lead in the repository; what is no page of Markdown is shown by one
(`deploy.site.sources`).
"""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from deploy.site.dialect import with_deep_items, with_plain_bars
from deploy.site.links import with_links
from deploy.site.navigation import INDEX, navigation
from deploy.site.sources import ROOT, LinkedFiles

_LINKED = LinkedFiles()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from the index."""
    config.nav = navigation((ROOT / INDEX).read_text(encoding="utf-8"), _LINKED.below)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of ``docs`` by those of the whole repository."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    for path in sorted(_LINKED.pages | _LINKED.media):
        place = str(ROOT / path)
        files.append(File.generated(config, path, abs_src_path=place))
    in_navigation = {*_in(config.nav)}
    for path in sorted(_LINKED.shown):
        if (page := _LINKED.page_of(path)) in _LINKED.pages:
            continue
        listed = page in in_navigation
        files.append(
            File.generated(
                config,
                page,
                content=_LINKED.text_of(path),
                inclusion=InclusionLevel.INCLUDED
                if listed
                else InclusionLevel.NOT_IN_NAV,
            )
        )
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Have links lead to pages of the site, and text in the dialect of MkDocs."""
    del config, files
    path = page.file.src_uri
    changed = with_links(markdown, lambda target: _LINKED.source_of(path, target))
    return with_deep_items(with_plain_bars(changed))


def _in(entries: object) -> list[str]:
    if isinstance(entries, dict):
        entries = [*entries.values()]
    if isinstance(entries, list):
        return [page for one in entries for page in _in(one)]
    return [str(entries)]
