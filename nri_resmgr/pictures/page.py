"""A picture as an HTML page."""

from __future__ import annotations

from nri_resmgr.pictures.svg import picture_svg
from nri_resmgr.pictures.text import escaped
from nri_resmgr.pictures.values import Picture


def picture_html(picture: Picture) -> str:
    """Draw a picture as a page, which needs no other file and is XML as well."""
    return (
        '<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml">\n'
        '<head><meta charset="utf-8"/>'
        '<meta name="color-scheme" content="light dark"/>'
        f"<title>{escaped(picture.title)}</title></head>\n<body>\n"
        f"{picture_svg(picture)}</body>\n</html>\n"
    )
