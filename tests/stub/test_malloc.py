"""How freed memory gets back to the kernel."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In a process of its own: the options stay, and so does the heap.
PROGRAM = """
import ctypes, sys, threading
from nri_resmgr.stub.malloc import return_large_blocks_at_once

class Info(ctypes.Structure):
    _fields_ = [(f"field{n}", ctypes.c_size_t) for n in range(10)]

libc = ctypes.CDLL(None)
if not hasattr(libc, "mallinfo2"):
    sys.exit("no glibc")
libc.mallinfo2.restype = Info
if sys.argv[1] == "set":
    return_large_blocks_at_once()
bytearray(16 << 20)  # freed at once
before = libc.mallinfo2().field4  # hblkhd: bytes in mappings of their own
kept = bytearray(1 << 20)
print(libc.mallinfo2().field4 - before >= len(kept))
"""


@pytest.mark.parametrize(("option", "is_mapped"), [("set", "True"), ("unset", "False")])
def test_a_large_block_has_its_own_mapping_after_a_larger_one(
    option: str, is_mapped: str
) -> None:
    command = [sys.executable, "-c", PROGRAM, option]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    if "no glibc" in shown.stderr:
        pytest.skip("mallinfo2 is a function of glibc")

    assert shown.stdout.strip() == is_mapped
