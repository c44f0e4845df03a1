"""The forms of output, ``-o``: a table for people, JSON and YAML for programs.

All commands use the same words. Every document for programs has ``apiVersion`` and
``kind``: the daemon's answers their own ones (`nri_resmgr.control`), all others
`API_VERSION`.
"""

from __future__ import annotations

import json
from typing import Final

from nri_resmgr.cli.flags import Parser, add_control_flag
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable_json

API_VERSION: Final = "cli.nri/v1"
"""Of documents that no daemon made.

A key that is removed, or changes its meaning, requires another version.
"""

_DOCUMENTS: Final = ("json", "yaml")


def add_output(parser: Parser, *, wide: str = "", each: str = "") -> None:
    """Add ``-o``.

    Args:
        parser: The parser of the command.
        wide: What the form ``wide`` adds to the table; without it there is none.
        each: What has a document of its own, where there are several.
    """
    forms = ("table", *(("wide",) if wide else ()), *_DOCUMENTS)
    notes = (
        f"wide adds {wide}" if wide else "",
        f"json and yaml have a document per {each}" if each else "",
    )
    text = "; ".join(("output format, default %(default)s", *filter(None, notes)))
    parser.add_argument("-o", "--output", choices=forms, default=forms[0], help=text)


def add_client_flags(parser: Parser, *, wide: str = "", each: str = "") -> None:
    """Add the flags of commands that query the daemon."""
    add_control_flag(parser)
    add_output(parser, wide=wide, each=each)


def is_document(form: str) -> bool:
    """Return whether a form is for programs."""
    return form in _DOCUMENTS


def own_document(kind: str, content: JsonObject) -> JsonObject:
    """Head a document of ours."""
    return {"apiVersion": API_VERSION, "kind": kind, **content}


def document_text(document: JsonObject, form: str) -> str:
    """Format a document as JSON or YAML, without an invisible character."""
    if form == "yaml":
        return _yaml(document)
    return printable_json(json.dumps(document, indent=2))


def print_document(document: JsonObject, form: str) -> None:
    """Print a document as JSON or YAML."""
    print(document_text(document, form))


def print_each(document: JsonObject, form: str) -> None:
    """Print one of several documents: a line of JSON, or YAML after ``---``."""
    print(each_text(document, form), flush=True)


def each_text(document: JsonObject, form: str) -> str:
    """Format one of several documents."""
    if form == "yaml":
        return f"---\n{_yaml(document)}"
    return printable_json(json.dumps(document))


def _yaml(document: JsonObject) -> str:
    # Late: it takes longer than all other imports of a client.
    import yaml

    # By JSON, so that it has the same values, and no anchors of lists that occur twice.
    # By Python's emitter, since libyaml's refuses lone surrogates, as of file names. It
    # escapes all that is not ASCII.
    plain = json.loads(json.dumps(document))
    return yaml.safe_dump(plain, sort_keys=False).removesuffix("\n")
