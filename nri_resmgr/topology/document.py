"""A machine as plain data for JSON and YAML."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.topology.machine import Machine
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import BadValue, JsonObject, from_plain, to_plain


@dataclass(eq=False)
class BadMachineDocument(InputError):
    """A document does not describe a machine."""

    why: str

    def __str__(self) -> str:
        return f"not a machine: {self.why}"


def to_document(machine: Machine) -> JsonObject:
    """Return the machine as dictionaries, tuples, strings and numbers.

    Keys are the names of attributes; attributes with their default are left out.
    CPU sets are in the kernel's list format, sizes in bytes, frequencies in kHz.
    """
    document: JsonObject = to_plain(machine)
    # The default depends on the cores, so that msgspec cannot leave it out.
    if machine.present == machine.online:
        del document["present"]
    return document


def from_document(document: object) -> Machine:
    """Build the machine that `to_document` described.

    Raises:
        BadMachineDocument: The document is invalid; the message names the path.
    """
    if not isinstance(document, dict):
        raise BadMachineDocument(f"want a mapping, found {document!r:.40}")
    try:
        return from_plain(Machine, document)
    except BadValue as error:
        raise BadMachineDocument(error.why) from error
