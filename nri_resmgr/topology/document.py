"""A machine as plain data for JSON and YAML, and back."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final

import cattrs
from cattrs.v import format_exception

from nri_resmgr.topology.machine import Machine
from nri_resmgr.values import CpuSet, InputError, NodeSet


@dataclass(eq=False)
class BadMachineDocument(InputError):
    """A document does not describe a machine."""

    why: str

    def __str__(self) -> str:
        return f"not a machine: {self.why}"


def to_document(machine: Machine) -> dict[str, Any]:
    """Return the machine as dictionaries, lists, texts and numbers.

    Keys are the attributes' names and are left out where they have their
    default; CPU sets are in the kernel's list format, sizes in bytes,
    frequencies in kHz.
    """
    document: dict[str, Any] = _CONVERTER.unstructure(machine)
    return document


def from_document(document: object) -> Machine:
    """Build the machine that `to_document` described.

    Raises:
        BadMachineDocument: A key is unknown or missing, or a value is of
            another type, or the facts do not fit together; the text names
            the first paths.
    """
    if not isinstance(document, dict):
        raise BadMachineDocument(f"want a mapping, found {document!r:.40}")
    try:
        return _CONVERTER.structure(document, Machine)
    except cattrs.BaseValidationError as error:
        problems = cattrs.transform_error(error, format_exception=_sentence)
        raise BadMachineDocument("; ".join(problems[:_MAX_PROBLEMS])) from error


_MAX_PROBLEMS: Final = 3


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=True)
    for kind in (int, str, bool):
        converter.register_structure_hook(kind, _exactly)
    converter.register_unstructure_hook(enum.StrEnum, _word)
    for ids in (CpuSet, NodeSet):
        converter.register_unstructure_hook(ids, str)
        converter.register_structure_hook(ids, _parse_ids)
    return converter


def _exactly(value: object, kind: type) -> object:
    """Refuse to guess: ``int("7")`` and ``bool("no")`` are somebody's mistakes."""
    if issubclass(kind, enum.Enum):  # our words are a kind of str
        return kind(value)
    if type(value) is not kind:
        msg = f"want {kind.__name__}, found {value!r}"
        raise TypeError(msg)
    return value


def _word(value: enum.StrEnum) -> str:
    return value.value  # YAML writes no kinds of str but str itself


def _parse_ids(value: object, kind: type[CpuSet | NodeSet]) -> CpuSet | NodeSet:
    return kind.parse(str(value))


def _sentence(error: BaseException, kind: type | None) -> str:
    known = isinstance(error, InputError | TypeError | ValueError)
    return str(error) if known else format_exception(error, kind)


_CONVERTER: Final = _make_converter()
