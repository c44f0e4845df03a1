"""TOML as people write it: any quotes, comments in odd places, values that look odd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

NRI: Final = ("plugins", "io.containerd.nri.v1.nri")

# Each is a table of its own; the second ones are other spellings of the same.
_HEADERS: Final = (
    ("[grpc]", "[ 'grpc' ]"),
    ("[plugins]", '["plugins"]'),
    ('[plugins."io.containerd.grpc.v1.cri"]', "[plugins.'io.containerd.grpc.v1.cri']"),
    (
        "[plugins.'io.containerd.grpc.v1.cri'.cni]",
        "[ plugins . 'io.containerd.grpc.v1.cri' . cni ]",
    ),
    ("[[stream]]", "[[ stream ]]"),
    ("[timeouts]", '["timeout\\u0073"]'),
)
_NRI_HEADERS: Final = (
    '[plugins."io.containerd.nri.v1.nri"]',
    "[plugins.'io.containerd.nri.v1.nri']",
    '["plugins" . "io.containerd.nri\\u002ev1.nri"] # NRI',
    "\t[ plugins.'io.containerd.nri.v1.nri' ]",
)
_VALUES: Final = (
    "1",
    "0x1F",
    "1_000.5e-3",
    "nan",
    "-inf",
    "true",
    "1979-05-27 07:32:00",
    "1979-05-27T07:32:00Z   # a date",
    '""',
    "''",
    '"a # b ] } \\" \\\\"',
    "'a # b ] } \" \\'",
    '"""\n[plugins."io.containerd.nri.v1.nri"]\ndisable = true\n\\""" quotes"""""',
    "'''\n[[x]]\n# no comment '' '''''",
    '""" one """',
    "[]",
    "[ # why\n  1, # one ]\n  [2, '#'],\n\n  # last\n]",
    "[{a = 1, 'b.c' = [']']}, {}]",
    "{}",
    '{ a.b = "}", c = [1, {}] } # inline',
)
_KEYS: Final = ("a", "b-c", "'d.e'", '"f g"', "h.i", "h . 'j'", "disable_x", '"äö"')
_NOISE: Final = ("", "   ", "# a comment", "  # [plugins]", "\t#disable = true", "#")
_SETTINGS: Final = (
    ("disable", ("true", "false", "'no'", "1", "[\n]")),
    ("plugin_registration_timeout", ('"5s"', "'10s'", '"""10s"""')),
    ("'plugin_request_timeout'", ('"2s" # short', "'3s'")),
    ("socket_path", ("'/run/nri.sock'", '"x"')),
    ("default_validator.enable", ("true",)),
)


@st.composite
def _body(draw: st.DrawFn, keys: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    lines: list[str] = []
    for name, values in draw(st.permutations(keys)):
        if draw(st.booleans()):
            continue
        indent = draw(st.sampled_from(("", "  ", "\t", "      ")))
        around = draw(st.sampled_from((" = ", "=", "\t=  ")))
        end = draw(st.sampled_from(("", "  ", " # because")))
        value = draw(st.sampled_from(values))
        lines.append(
            f"{indent}{name}{around}{value}{'' if '#' in value[-12:] else end}"
        )
        lines.extend(draw(st.lists(st.sampled_from(_NOISE), max_size=2)))
    return lines


@st.composite
def _sections(draw: st.DrawFn) -> list[list[str]]:
    any_keys = [(name, _VALUES) for name in _KEYS]
    sections = []
    for spellings in draw(st.lists(st.sampled_from(_HEADERS), unique=True)):
        header = draw(st.sampled_from(spellings))
        sections.append([header, *draw(_body(any_keys))])
    form = draw(st.sampled_from(("none", "header", "header", "sub-table", "dotted")))
    if form == "header":
        header = draw(st.sampled_from(_NRI_HEADERS))
        sections.append([header, *draw(_body(_SETTINGS))])
    if form == "sub-table":
        sections.append([f"[{'.'.join(('plugins', repr(NRI[1]), 'sub'))}]", "x = 1"])
    sections = list(draw(st.permutations(sections)))
    top = draw(_body(any_keys))
    if form == "dotted" and not any(
        "plugins]" in s[0].replace('"', "") for s in sections
    ):
        names = [(f"plugins.'{NRI[1]}'.{name}", values) for name, values in _SETTINGS]
        top += draw(_body(names[:4]))
    return [["version = 2"], top, *sections]


@st.composite
def toml_documents(draw: st.DrawFn) -> str:
    """Draw a text that is TOML, with or without the table of NRI."""
    lines = [line for section in draw(_sections()) for line in section]
    newline = draw(st.sampled_from(("\n", "\n", "\r\n")))
    end = draw(st.sampled_from((newline, "", newline * 3)))
    return "\n".join(lines).replace("\n", newline) + end
