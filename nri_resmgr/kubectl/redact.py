r"""Takes secrets out of texts and objects before others read them.

It replaces too much rather than too little: the value of whatever is named like a
password, a token or a private key, and credentials that are known by their form, such
as keys in PEM, JSON web tokens and the user part of a URL. Values of environment
variables are replaced unless the variable is ours. A secret without such a name or form
stays, as in the middle of a sentence, and so do names of pods and nodes. A second
application changes nothing, and the time is linear in the length.

`tests/kubectl/test_redact.py` plants secrets of each kind in texts and objects, and
compares texts without any, such as our own configurations.

>>> print(redact_text("sent to https://me:hunter2@example.com password=hunter2"))
sent to https://REDACTED@example.com password=REDACTED
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator, Sequence
from typing import Any, Final

REDACTED: Final = "REDACTED"
"""What stands in place of a secret."""

_OURS: Final = "NRI_RESMGR_"

# Parts of lines that may have a secret by its name: to look for these is much faster
# than for the patterns below.
_PARTS: Final = (
    *("passw", "passphrase", "pwd", "secret", "token", "credential"),
    *("authorization", "cookie", "key"),
)
# From the telling part of a name to its end; the bound keeps the time linear.
_NAME: Final = r"""
    (?: passw(?:or)?d | passphrase | pwd | secret | token | credential | authorization
      | cookie | (?:api|access|private|signing|encryption)[-_.]?key )
    [\w.-]{0,60}
"""
# Quoted, quoted in a string that is quoted itself, a list, or up to a space or quote.
_VALUE: Final = r"""
    (?P<value>
        "(?:\\.|[^"\\])*"?
      | '[^']*'?
      | (?P<escape>\\+)".*?(?:(?<!\\)(?P=escape)"|$)
      | \[[^\]]*\]?
      | (?:basic|bearer)[ \t]+[^\s"']+
      | [^\s"']+
    )
"""


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.VERBOSE | re.IGNORECASE)


_TELLING: Final = _pattern(_NAME)
# Names that end so say where a secret is, or something else about it.
_ABOUT: Final = _pattern(r"(?:name|path|file|dir|ref|kind|type|seconds|mode)s?$")
# No secrets; the last two begin a block of YAML.
_HARMLESS: Final = _pattern(r"true|false|null|none|~|\{\}|\[\]|[|>][-+\d]*|")

# As it is in a file or in a string; it may be cut off.
_PEM: Final = re.compile(
    r"(?s)(-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----).*?(?=-----END |\Z)"
)
_FORMS: Final = (
    # JSON web tokens, as those of service accounts: the first part begins with {".
    re.compile(r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),  # AWS
    re.compile(r"\bgh[pousr]_\w{36,}"),  # GitHub
    re.compile(r"(?i)(?<=\bbearer )[\w+/=.~-]{8,}"),
    # Up to the last @ before the path, since a password may have one.
    re.compile(r"(?<=://)[^\s/\"'<>]+(?=@)"),
)
# Of a line that begins a block of YAML, which is indented deeper.
_BLOCK: Final = _pattern(
    rf"""(?P<indent>[ \t]*(?:-[ \t]+)*)["']?[\w./-]*?{_NAME}["']?:[ \t]*
    [|>][-+\d]*\s*$"""
)
# Two lines of YAML for an environment variable.
_VARIABLE: Final = _pattern(
    r"""[ \t]*(?:-[ \t]+)*name:[ \t]*(?P<name>[^\s"']+|"[^"]*"|'[^']*')\s*$"""
)
_OF_VARIABLE: Final = _pattern(r"(?P<indent>[ \t]+)value:[ \t]*(?=(?P<text>[^\r\n]+))")
_NAMED: Final = (
    # A line of YAML or of HTTP, with all that follows on it.
    _pattern(
        rf"""^(?P<head>[ \t]*(?:-[ \t]+)*[\w./-]*?(?P<name>{_NAME}):[ \t]+)
        (?P<value>[^\s"'|>{{\[][^\r\n]*)"""
    ),
    # Anywhere: name=value, "name": "value". What is in a mapping has names of its own.
    _pattern(
        rf"""(?P<head>(?P<name>{_NAME})\\*["']?[ \t]*(?:=|:(?![ \t]*{{))[ \t]*)
        {_VALUE}"""
    ),
    _pattern(rf"(?P<head>(?<!\S)--?[\w.-]*?(?P<name>{_NAME})[ \t]+)(?!-){_VALUE}"),
)


def redact_text(text: str) -> str:
    """Return a text of lines, such as a log or YAML, without the secrets in it."""
    text = _PEM.sub(rf"\1{REDACTED}", text)
    for form in _FORMS:
        text = form.sub(REDACTED, text)
    return "".join(_lines(text.splitlines(keepends=True)))


def redact_data(data: Any) -> Any:
    """Return data of JSON without the secrets in it.

    >>> redact_data({"auth": {"token": "x", "secretName": "y"}, "cpus": "0-3"})
    {'auth': {'token': 'REDACTED', 'secretName': 'y'}, 'cpus': '0-3'}
    """
    match data:
        case str():
            return redact_text(data)
        case {"name": str(name), "value": str(value), **more} if not more:
            shown = redact_text(value) if _is_open(name) else REDACTED
            return {"name": name, "value": shown}
        case dict():
            return {
                key: _hidden(one) if _is_telling(key) else redact_data(one)
                for key, one in data.items()
            }
        case list():
            return list(_items(data))
        case _:
            return data


def redact_archive(data: bytes) -> bytes:
    """Return a compressed tar without the secrets in its files, which are text.

    Raises:
        OSError, tarfile.TarError, EOFError: It is no such archive, or damaged.
    """
    written = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as before,
        tarfile.open(fileobj=written, mode="w:gz") as after,
    ):
        for member in before:
            file = before.extractfile(member) if member.isfile() else None
            text = redact_text(file.read().decode(errors="replace")) if file else ""
            member.size = len(encoded := text.encode())
            after.addfile(member, io.BytesIO(encoded))
    return written.getvalue()


def _lines(lines: Sequence[str]) -> Iterator[str]:
    variable = ""  # that the line before names
    depth = -1  # of the line whose block this line may be in
    for line in lines:
        if depth >= 0:
            if not line.strip() or len(line) - len(line.lstrip()) > depth:
                continue
            depth = -1
        block, hidden = _BLOCK.match(line), None
        if variable and not _is_open(variable):
            hidden = _OF_VARIABLE.match(line)
        if hidden and hidden["text"][0] in "|>":
            block, hidden = hidden, None
        if hidden:
            yield f"{hidden[0]}{REDACTED}{line[hidden.end('text') :]}"
        else:
            yield _line(line)
        named = _VARIABLE.match(line)
        variable = named["name"].strip("\"'") if named else ""
        if block and line.endswith("\n"):
            depth = len(block["indent"])
            yield f"{' ' * depth}  {REDACTED}\n"


def _line(line: str) -> str:
    lower = line.lower()
    if any(part in lower for part in _PARTS):
        for named in _NAMED:
            line = named.sub(_without_value, line)
    return line


def _without_value(found: re.Match[str]) -> str:
    value = found["value"]
    if _ABOUT.search(found["name"]) or _HARMLESS.fullmatch(value.strip("\\\"',; \t")):
        return found[0]
    begin = re.match(r"\\*[\"']|", value)
    quote = begin[0] if begin else ""
    end = quote if len(value) > len(quote) and value.endswith(quote) else ""
    return f"{found['head']}{quote}{REDACTED}{end}"


def _is_open(variable: str) -> bool:
    """Return whether the value of an environment variable may be known."""
    return variable.startswith(_OURS) and not _is_telling(variable)


def _is_telling(name: str) -> bool:
    return _TELLING.search(name) is not None and _ABOUT.search(name) is None


def _hidden(data: Any) -> Any:
    """Return data of which only the shape may be known."""
    match data:
        case dict():
            return {key: _hidden(one) for key, one in data.items()}
        case list():
            return [_hidden(one) for one in data]
        case None | bool() | "":
            return data
        case _:
            return REDACTED


def _items(data: Sequence[Any]) -> Iterator[Any]:
    """Yield the items of a list, which may be flags with values that follow them."""
    before: Any = None
    for one in data:
        is_flag = isinstance(before, str) and before.startswith("-")
        if is_flag and isinstance(one, str) and not one.startswith("-"):
            hides = "=" not in before and _is_telling(before)
            yield REDACTED if hides else redact_text(one)
        else:
            yield redact_data(one)
        before = one
