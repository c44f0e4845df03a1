"""The content of the spool folder as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.app.adjustments.adjustment import Adjustment
from nri_resmgr.app.adjustments.read import ReadAdjustment, read_adjustments
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.spool_folder import SpoolFolder
from nri_resmgr.policies import parse_config
from nri_resmgr.spool import (
    ADJUSTMENTS,
    CONFIGURATION,
    BadSpoolFile,
    SpoolFile,
    decode,
)
from nri_resmgr.values import HostError, InputError, ResmgrError

REQUEST: Final = "request"
"""The key of an error that is about all adjustments."""

Found: TypeAlias = SpoolFile | ResmgrError | None
Config: TypeAlias = PolicyConfig | ResmgrError | None


class EmptyDocument(InputError):
    """A spool file has a header only."""

    def __str__(self) -> str:
        return "the document is empty"


class Objects(msgspec.Struct, frozen=True):
    """The adjustments that a file has, and mistakes by their names."""

    read: tuple[ReadAdjustment, ...] = ()
    errors: Mapping[str, str] = {}


class Reading(msgspec.Struct, frozen=True):
    """The content of the folder; None for a missing file, or why it cannot be read.

    Attributes:
        config: What the configuration means; None if it does not count, or is missing.
        objects: What the adjustments mean.
    """

    configuration: Found = None
    adjustments: Found = None
    config: Config = None
    objects: Objects = Objects()
    problem: str = ""

    @property
    def is_unread(self) -> bool:
        """Whether there was a fault of the host."""
        files = self.configuration, self.adjustments
        return bool(self.problem) or any(isinstance(one, HostError) for one in files)


def read_folder(folder: SpoolFolder, *, with_config: bool) -> Reading:
    """Read the folder and what its files mean.

    This is for a thread: long adjustments take seconds, and requests go first.

    Args:
        folder: The spool folder.
        with_config: Whether the configuration counts, so that its text is read, too.
    """
    try:
        found = folder.read()
    except HostError as error:
        return Reading(problem=str(error))
    document = _decoded(found[CONFIGURATION])
    if isinstance(document, SpoolFile) and not document.body.strip():
        document = EmptyDocument()  # else it would be the built-in default
    adjustments = _decoded(found[ADJUSTMENTS])
    config: Config = None
    if isinstance(document, SpoolFile) and with_config:
        config = read_config(document.body)
    if isinstance(adjustments, SpoolFile):
        return Reading(document, adjustments, config, _read_objects(adjustments))
    return Reading(document, adjustments, config)


def read_config(text: str) -> PolicyConfig | ResmgrError:
    """Return the configuration that a text is, or its mistake."""
    try:
        return parse_config(text)
    except ResmgrError as error:
        return error


def for_this_node(read: Sequence[ReadAdjustment]) -> tuple[Adjustment, ...]:
    """Return the adjustments that are for this node."""
    return tuple(one.adjustment for one in read if one.adjustment is not None)


def _decoded(content: bytes | HostError | None) -> Found:
    if not isinstance(content, bytes):
        return content
    try:
        return decode(content)
    except BadSpoolFile as error:
        return error


def _read_objects(file: SpoolFile) -> Objects:
    try:
        read = read_adjustments(file.body, file.header.node)
    except InputError as error:
        return Objects(errors={REQUEST: str(error)})
    return Objects(read, {one.object.name: one.why for one in read if one.why})
