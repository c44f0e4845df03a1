"""Sets of CPUs and of NUMA nodes, each one integer, in the kernel's text formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Self

import attrs

from nri_resmgr.values.errors import BadListFormat, BadMask

# Eight times the largest CONFIG_NR_CPUS (8192, x86); a typo must not eat memory.
MAX_ID: Final = (1 << 16) - 1

_WORD: Final = 64
_WORD_MASK: Final = (1 << _WORD) - 1
_REGION: Final = re.compile(
    r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6})/(\d{1,6}))?)?", re.ASCII
)
# The kernel takes any run of commas and blanks between two regions.
_SEPARATORS: Final = re.compile(r"[,\s]+", re.ASCII)
_ONES: Final = re.compile("1+")
_MASK: Final = re.compile(r"[0-9a-f]{1,8}(?:,[0-9a-f]{1,8})*", re.ASCII | re.IGNORECASE)


@attrs.frozen(repr=False)
class _IdSet:
    """What CPU sets and node sets share; never used as a type of its own."""

    bits: int = 0

    def __attrs_post_init__(self) -> None:
        if self.bits < 0:
            msg = f"a set has no negative ids: {self.bits}"
            raise ValueError(msg)

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
        """Make the set of everything that is in any of *sets*."""
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
            BadListFormat: The kernel would refuse the text, or an id is above
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
        if not _MASK.fullmatch(stripped):
            raise BadMask(text)
        return cls(int("".join(w.zfill(8) for w in stripped.split(",")), 16))

    @property
    def first(self) -> int:
        """The lowest id; asking an empty set is a bug of the caller's."""
        if not self.bits:
            msg = "an empty set has no lowest id"
            raise ValueError(msg)
        return (self.bits & -self.bits).bit_length() - 1

    def lowest(self, count: int) -> Self:
        """Return the *count* lowest ids, or all when there are not so many."""
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
        """Tell whether no id is in both sets."""
        return not self.bits & other.bits

    def mask(self) -> str:
        """Write the kernel's mask format, most significant word first."""
        words = max(1, -(-self.bits.bit_length() // 32))
        digits = f"{self.bits:0{words * 8}x}"
        return ",".join(digits[at : at + 8] for at in range(0, len(digits), 8))

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
        return bool(self.bits)

    def __iter__(self) -> Iterator[int]:
        # Word by word: arithmetic on 2048-bit integers is several times slower.
        for start in range(0, self.bits.bit_length(), _WORD):
            word = self.bits >> start & _WORD_MASK
            while word:
                lowest = word & -word
                yield start + lowest.bit_length() - 1
                word ^= lowest

    def __str__(self) -> str:
        return ",".join(
            str(first) if first == last else f"{first}-{last}"
            for first, last in _runs(self.bits)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


@attrs.frozen(repr=False)
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


@attrs.frozen(repr=False)
class NodeSet(_IdSet):
    """NUMA nodes as one integer: bit *n* stands for node *n*.

    Behaves as `CpuSet` does, and is another type so that nobody confuses them.

    >>> str(NodeSet.of(0, 1, 8))
    '0-1,8'
    """


NO_CPUS: Final = CpuSet()
NO_NODES: Final = NodeSet()


def _region_bits(text: str, region: str) -> int:
    if len(region) < len(str(MAX_ID)) and region.isascii() and region.isdecimal():
        return 1 << int(region)  # most regions by far are one id
    match = _REGION.fullmatch(region)
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


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last id of every run of ones, ascending."""
    for run in _ONES.finditer(f"{bits:b}"[::-1]):
        yield run.start(), run.end() - 1
