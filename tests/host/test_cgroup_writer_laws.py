"""What holds for any cgroups of a container and any values for them."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.cgroups.writer import CgroupWriter, CpusetValues, WriteOutcome
from nri_resmgr.values import CpuSet, NodeSet
from tests.host.cgroup_kernel import CPUSETS, TOP, KernelModel

CONTAINER: Final = CgroupReference("c1", "/pod/c1")
PARENT: Final = CpuSet.from_iterable(range(6))
PARENT_NODES: Final = NodeSet.from_iterable(range(3))
MACHINE: Final = CpuSet.from_iterable(range(7))
MACHINE_NODES: Final = NodeSet.from_iterable(range(4))

some_cpus = st.integers(1, PARENT.bits).map(CpuSet)
some_nodes = st.integers(1, PARENT_NODES.bits).map(NodeSet)
wanted = st.builds(
    CpusetValues,
    cpus=st.just(CpuSet()) | some_cpus,
    mems=st.just(NodeSet()) | some_nodes,
    shares=st.sampled_from((0, 2, 1024, 4096)),
)
# The parent lacks the last CPU and node of the machine, which lacks the last of these.
beyond = st.builds(
    CpusetValues,
    cpus=st.integers(0, 4 * PARENT.bits).map(CpuSet),
    mems=st.integers(0, 4 * PARENT_NODES.bits).map(NodeSet),
    shares=st.sampled_from((0, 2, 1024)),
)


@st.composite
def kernels(draw: st.DrawFn) -> KernelModel:
    """A kernel with a container of one or two cgroups, below a pod's."""
    is_v2 = draw(st.booleans())
    sets, others = {}, {f"{TOP}/cgroup.controllers": "cpuset cpu"} if is_v2 else {}
    top = TOP if is_v2 else f"{TOP}/cpuset"
    cpu_top = TOP if is_v2 else f"{TOP}/cpu"
    folders = ["pod/c1", "pod/c1/container"] if draw(st.booleans()) else ["pod/c1"]
    above = {"cpuset.cpus": PARENT.bits, "cpuset.mems": PARENT_NODES.bits}
    for file in CPUSETS:
        sets[f"{top}/{file}"] = str(CpuSet(2 * above[file] + 1))
        sets[f"{top}/pod/{file}"] = str(CpuSet(above[file]))
    for folder in folders:
        others[f"{top}/{folder}/cgroup.procs"] = "42"
        for file in CPUSETS:
            # Version 1 has a part of those above, version 2 anything or nothing.
            part = draw(st.just(0) | st.integers(0, above[file]))
            if not is_v2:
                part = part & above[file] or above[file]
                above[file] = part
            sets[f"{top}/{folder}/{file}"] = str(CpuSet(part))
        file, text = ("cpu.weight", "100") if is_v2 else ("cpu.shares", "1024")
        others[f"{cpu_top}/{folder}/{file}"] = text
    others[f"{cpu_top}/cgroup.procs"] = ""
    return KernelModel(sets, others, is_v2=is_v2)


def container_files(kernel: KernelModel, file: str) -> list[str]:
    """Files of the container, the outer cgroup's first."""
    return sorted(p for p in kernel.sets if "/c1/" in p and p.endswith(f"/{file}"))[
        ::-1
    ]


def inmost(kernel: KernelModel, file: str) -> str:
    """File of the cgroup that has the container's processes."""
    return max(container_files(kernel, file), key=len)


@given(kernel=kernels(), sequence=st.lists(wanted, min_size=1, max_size=5))
def test_the_last_written_values_are_in_force(
    kernel: KernelModel, sequence: list[CpusetValues]
) -> None:
    writer = CgroupWriter(kernel)
    for values in sequence:
        unset = {path for path, found in kernel.sets.items() if not found}
        result = writer.write(CONTAINER, values)

        assert kernel.rejected == []
        assert result.outcome in (WriteOutcome.WRITTEN, WriteOutcome.UNCHANGED)
        for file, bits in zip(CPUSETS, (values.cpus, values.mems), strict=True):
            path = inmost(kernel, file)
            if bits:
                assert kernel.in_force(path).bits == bits.bits
                assert kernel.sets[path].bits == bits.bits
                for other in container_files(kernel, file):
                    # One that had no set confines nothing and is left so.
                    kept = other in unset and other != path
                    assert kernel.sets[other].bits == (0 if kept else bits.bits)
        again = writer.write(CONTAINER, values)
        assert again.outcome is WriteOutcome.UNCHANGED


@given(kernel=kernels(), values=wanted)
def test_no_intermediate_value_is_outside_of_old_and_new(
    kernel: KernelModel, values: CpusetValues
) -> None:
    """Nor less than what stays, unless the kernel chose among what is written."""
    sets = dict(zip(CPUSETS, (values.cpus.bits, values.mems.bits), strict=True))
    before = {file: kernel.in_force(inmost(kernel, file)).bits for file in CPUSETS}
    written = {file: kernel.sets[inmost(kernel, file)].bits for file in CPUSETS}
    seen: dict[str, list[int]] = {file: [] for file in CPUSETS}

    def look() -> None:
        for file in CPUSETS:
            seen[file].append(kernel.in_force(inmost(kernel, file)).bits)

    kernel.on_write = look
    CgroupWriter(kernel).write(CONTAINER, values)

    for file, found in seen.items():
        new = sets[file] or before[file]
        for bits in found:
            assert bits & ~(before[file] | new) == 0
            kept = before[file] & new if before[file] == written[file] else 0
            assert kept & ~bits == 0


@given(kernel=kernels(), values=beyond)
def test_impossible_values_change_nothing(
    kernel: KernelModel, values: CpusetValues
) -> None:
    before, others = dict(kernel.sets), dict(kernel.others)
    in_force = {path: kernel.in_force(path) for path in before}
    result = CgroupWriter(kernel).write(CONTAINER, values)

    within = values.cpus <= PARENT and values.mems <= PARENT_NODES
    possible = values.cpus <= MACHINE and values.mems <= MACHINE_NODES
    fails = not possible if kernel.is_v2 else not within
    assert (result.outcome is WriteOutcome.FAILED) == fails
    if fails:
        assert {path: kernel.in_force(path) for path in before} == in_force
        assert kernel.others == others
        # The kernel does not let what was empty be so again.
        changed = {path for path in before if kernel.sets[path] != before[path]}
        assert not any(before[path] for path in changed)
        assert "restor" not in result.why
        assert "/pod has only " in result.why or not possible
