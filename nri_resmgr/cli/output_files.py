"""Files that commands write besides their answer: pictures, timelines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nri_resmgr.cli.flags import PAGE_SUFFIX, PICTURE, STDOUT
from nri_resmgr.cli.streams import write_unfiltered
from nri_resmgr.pictures.page import picture_html
from nri_resmgr.pictures.svg import picture_svg
from nri_resmgr.pictures.values import Picture
from nri_resmgr.values import InputError


@dataclass(eq=False)
class NotWritten(InputError):
    """A file that a flag names cannot be written."""

    flag: str
    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.flag} {self.path}: {self.why}"


def write_picture(picture: Picture, path: str) -> None:
    """Draw a picture in a file, as SVG or HTML by its name, or on standard output.

    Raises:
        NotWritten: The operating system refuses to write it.
    """
    if path == STDOUT:
        write_unfiltered(picture_svg(picture))
        return
    draw = picture_html if path.endswith(PAGE_SUFFIX) else picture_svg
    write_file(PICTURE, path, (draw(picture),))


def write_file(flag: str, path: str, pieces: Iterable[str]) -> None:
    """Write a text of several pieces to the file that a flag names.

    Raises:
        NotWritten: The operating system refuses to write it.
    """
    try:
        with Path(path).open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise NotWritten(flag, path, why) from None
