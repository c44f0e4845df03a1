"""Sets of CPUs and of NUMA nodes, each one integer, in the kernel's text formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Final, Self

from nri_resmgr.values.errors import BadListFormat, BadMask

# Eight times the largest CONFIG_NR_CPUS (8192, x86); a typo must not eat memory.
MAX_ID: Final = (1 << 16) - 1
_SHORT: Final = len(str(MAX_ID))  # a number with fewer digits is in range

# The kernel takes any run of commas and blanks between two regions.
_SEPARATORS: Final = re.compile(r"[,\s]+", re.ASCII)
# Compiled on first use: lists in the form that the kernel writes need no pattern.
_REGION: Final = r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6})/(\d{1,6}))?)?"
_MASK: Final = r"[0-9a-f]{1,8}(?:,[0-9a-f]{1,8})*"
# Number of digits that are scanned in the time of one step on integers.
_SPARSE: Final = 32
_TRUTH: Final = bytes.maketrans(b"01", b"\0\1")


class _IdSet:
    """Base of CPU sets and node sets.

    The only value that is not a `msgspec.Struct`: msgspec would write a Struct as a
    mapping, and sets are written as text (see `nri_resmgr.values.documents`).
    """

    __slots__ = ("bits",)

    bits: int

    def __init__(self, bits: int = 0) -> None:
        if bits < 0:
            raise ValueError(f"a set has no negative ids: {bits}")
        _set_bits(self, bits)  # the fastest way around `__setattr__`

    def __setattr__(self, name: str, _: object) -> None:
        raise AttributeError(f"cannot set {name!r}: {type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete {name!r}: {type(self).__name__} is frozen")

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        # For copies: by default Python would set attributes, which is forbidden.
        return type(self), (self.bits,)

    @classmethod
    def of(cls, *ids: int) -> Self:
        """Make the set of *ids*."""
        return cls.from_iterable(ids)

    @classmethod
    def from_iterable(cls, ids: Iterable[int]) -> Self:
        """Make the set of the ids that *ids* yields, in any order, repeats allowed."""
        bits = 0
        for number in ids:
            bits |= 1 << number
        return cls(bits)

    @classmethod
    def union(cls, sets: Iterable[Self]) -> Self:
        """Make the union of *sets*."""
        bits = 0
        for one in sets:
            bits |= one.bits
        return cls(bits)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the kernel's list format: ``"0-3,8"``, ``"0-31:2/4"``, or nothing.

        Args:
            text: Ids and ranges; ``0-31:2/4`` takes the first 2 of every 4 ids
                from 0 to 31. Blank text is the empty set.

        Raises:
            BadListFormat: The kernel would reject the text, or an id is above
                `MAX_ID`.

        Source:
            cpuset(7), FORMATS, "List format"; Linux ``bitmap_parselist``.
        """
        bits = 0
        for region in _SEPARATORS.split(text):
            if region:
                bits |= _region_bits(text, region)
        return cls(bits)

    @classmethod
    def from_mask(cls, text: str) -> Self:
        """Read the kernel's mask format, ``"00000003,ffffffff"``.

        Raises:
            BadMask: A word is not one to eight hexadecimal digits.

        Source:
            cpuset(7), FORMATS, "Mask format".
        """
        stripped = text.strip()
        if not re.fullmatch(_MASK, stripped, re.ASCII | re.IGNORECASE):
            raise BadMask(text)
        return cls(int("".join(w.zfill(8) for w in stripped.split(",")), 16))

    @property
    def first(self) -> int:
        """The lowest id; the set must not be empty."""
        if not self.bits:
            raise ValueError("an empty set has no lowest id")
        return (self.bits & -self.bits).bit_length() - 1

    def lowest(self, count: int) -> Self:
        """Return the *count* lowest ids, or all if there are fewer."""
        if count <= 0:
            return type(self)()
        low, high = 0, self.bits.bit_length()
        while low < high:
            middle = (low + high) // 2
            if (self.bits & ((1 << middle) - 1)).bit_count() < count:
                low = middle + 1
            else:
                high = middle
        return type(self)(self.bits & ((1 << low) - 1))

    def isdisjoint(self, other: Self) -> bool:
        """Return whether no id is in both sets."""
        return not self.bits & other.bits

    def mask(self) -> str:
        """Write the kernel's mask format, most significant word first."""
        words = max(1, -(-self.bits.bit_length() // 32))
        digits = f"{self.bits:0{words * 8}x}"
        return ",".join(digits[at : at + 8] for at in range(0, len(digits), 8))

    def __eq__(self, other: object) -> bool:
        # Not by content alone: a CPU set never equals a node set.
        if other.__class__ is self.__class__:
            return self.bits == other.bits
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.bits)

    def __or__(self, other: Self) -> Self:
        return type(self)(self.bits | other.bits)

    def __and__(self, other: Self) -> Self:
        return type(self)(self.bits & other.bits)

    def __sub__(self, other: Self) -> Self:
        return type(self)(self.bits & ~other.bits)

    def __xor__(self, other: Self) -> Self:
        return type(self)(self.bits ^ other.bits)

    def __le__(self, other: Self) -> bool:
        return not self.bits & ~other.bits

    def __lt__(self, other: Self) -> bool:
        return self.bits != other.bits and not self.bits & ~other.bits

    def __contains__(self, number: int) -> bool:
        return number >= 0 and bool(self.bits >> number & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __iter__(self) -> Iterator[int]:
        return _ids(self.bits)

    def __str__(self) -> str:
        return ",".join(
            str(first) if first == last else f"{first}-{last}"
            for first, last in _runs(self.bits)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


_set_bits: Final = vars(_IdSet)["bits"].__set__


class CpuSet(_IdSet):
    """Logical CPUs as one integer: bit *n* stands for CPU *n*.

    Equality is by content and the value is hashable. The operators return new
    sets; ``<=`` is "subset of". Iteration ascends. Text is the kernel's list
    format, always in canonical form.

    Source:
        cpuset(7), FORMATS, "List format".

    >>> str(CpuSet.parse("4,0-2,3") - CpuSet.of(1))
    '0,2-4'
    """

    __slots__ = ()


class NodeSet(_IdSet):
    """NUMA nodes as one integer: bit *n* stands for node *n*.

    It behaves like `CpuSet`; the separate type prevents confusion of the two.

    >>> str(NodeSet.of(0, 1, 8))
    '0-1,8'
    """

    __slots__ = ()


NO_CPUS: Final = CpuSet()
NO_NODES: Final = NodeSet()


def _region_bits(text: str, region: str) -> int:
    if len(region) < _SHORT and region.isascii() and region.isdecimal():
        return 1 << int(region)  # nearly all regions are one id or a plain range
    low, _, high = region.partition("-")
    if len(low) < _SHORT > len(high) and (low + high).isascii():
        in_order = low.isdecimal() and high.isdecimal() and int(low) <= int(high)
        if in_order:
            return ((2 << int(high) - int(low)) - 1) << int(low)
    match = re.fullmatch(_REGION, region, re.ASCII)
    if match is None:
        raise BadListFormat(text, region)
    first, last, used, group = (int(number or -1) for number in match.groups())
    if last < 0:
        last = first
    if first > last or last > MAX_ID or group == 0 or used > group:
        raise BadListFormat(text, region)
    if group < 0:
        return ((1 << last - first + 1) - 1) << first
    pattern = 0
    for start in range(0, last - first + 1, group):
        pattern |= ((1 << used) - 1) << start
    return (pattern & ((1 << last - first + 1) - 1)) << first


def _ids(bits: int) -> Iterator[int]:
    """Yield the positions of ones, ascending."""
    if bits.bit_count() * _SPARSE < bits.bit_length():
        return _few_ids(bits)
    # As text: arithmetic on 2048-bit integers is several times slower.
    start = max(0, (bits & -bits).bit_length() - 1)
    digits = f"{bits >> start:b}"[::-1].encode().translate(_TRUTH)
    return compress(range(start, start + len(digits)), digits)


def _few_ids(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last id of every run of ones, ascending."""
    digits = f"0{bits:b}"[::-1]  # the last run ends before this 0
    first = digits.find("1")
    while first >= 0:
        end = digits.find("0", first)
        yield first, end - 1
        first = digits.find("1", end)
