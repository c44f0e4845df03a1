"""Characters that a terminal obeys, or that hide or reorder what is read."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

CONTROLS: Final = (*range(0x20), 0x7F, *range(0x80, 0xA0))
BIDI: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
ZERO_WIDTH: Final = (0x00AD, *range(0x200B, 0x200E), *range(0x2060, 0x2065), 0xFEFF)
SEPARATORS: Final = (0x2028, 0x2029)
SURROGATES: Final = (0xD800, 0xDBFF, 0xDC80, 0xDFFF)
TAGS: Final = (0xE0001, 0xE0020, 0xE007F)

# In protobuf and YAML, texts are valid Unicode.
VALID: Final = "".join(
    map(chr, (*CONTROLS, *BIDI, *ZERO_WIDTH, *SEPARATORS, *TAGS)),
)
ALL: Final = VALID + "".join(map(chr, SURROGATES))

FORGED: Final = "[error    ] forged"
"""The beginning of a line that nothing of ours writes."""

TEXTS: Final = st.text(st.sampled_from(f"{ALL}ab '\"\\={{") | st.characters())


def found_in(text: str) -> set[str]:
    """Return the hostile characters in an output, in which lines and tabs may be."""
    return {hex(ord(one)) for one in set(ALL) - {"\n", "\t"} if one in text}


def forged_in(text: str) -> list[str]:
    """Return the lines that begin like one of another origin."""
    return [line for line in text.split("\n") if line.startswith(FORGED)]
