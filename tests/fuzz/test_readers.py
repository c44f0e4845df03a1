"""Whatever others write is read, or refused in a sentence of ours: nothing else."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.values import ResmgrError
from tests.fuzz import samples
from tests.fuzz.drawn import mutants
from tests.fuzz.readers import READERS

HEADER = samples.recording()[0]

# Found by the law below, each at its time; a short run need not find them again.
FOUND = [
    ("recording", HEADER + '{"time": Infinity, "configured": ""}'),
    ("recording", HEADER + '{"time": 1, "number": NaN, "call": "Synchronize"}'),
    ("recording", HEADER + '{"time": 1, "machine": ' + "[" * 5000),
    ("annotations", '{"k.resource-policy.nri.io/' + "x" * 5000 + '": ""}'),
    ("annotations", '{"resource-policy.nri.io/affinity": "' + "x" * 900 + ': 1"}'),
    ("annotations", '{"memory-type.resource-policy.nri.io": "' + "9" * 5000 + '"}'),
    ("configuration", "a: " + "9" * 5000),
    ("configuration", "apiVersion: 0x" + "f" * 5000),
    ("configuration", "a: &a [*a]"),
    ("machine in words", "8192s"),
    ("/proc/pressure/cpu", "some avg10=..12 avg60=1.00 avg300=0.10 total=5"),
    ("/proc/stat", "cpu0 ² 2 3 4 5"),
    ("/proc/stat", "cpu0 1 2 3 4 " + "9" * 5000),
    ("/proc/1/mountinfo", "22 1 :1 / / rw - ext4 /dev/sda1 rw"),
    ("/var/lib/kubelet/cpu_manager_state", "[" * 100_000),
    ("/var/lib/kubelet/config.yaml", "a" + "\n" * 60_000 + "b"),
    (
        "/sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal: 1 kB\nNode 0 MemUsed: " + "9" * 5000 + " kB",
    ),
    (
        "/sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal: " + "9" * 5000 + " kB",
    ),
]


@pytest.mark.parametrize(("name", "text"), FOUND, ids=range(len(FOUND)))
@pytest.mark.timeout(10)
def test_inputs_found_by_fuzzing_are_read_or_refused(name: str, text: str) -> None:
    with contextlib.suppress(ResmgrError):
        READERS[name].read(text)


@pytest.mark.parametrize("name", READERS)
@given(st.data())
def test_mutated_inputs_are_read_or_refused(name: str, data: st.DataObject) -> None:
    reader = READERS[name]
    text = data.draw(mutants(tuple(reader.samples())) | st.text(max_size=40))

    with contextlib.suppress(ResmgrError):
        reader.read(text)
