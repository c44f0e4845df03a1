"""The pretended resctrl refuses and moves what the kernel does."""

from __future__ import annotations

import errno

import pytest

from nri_resmgr.testing.resctrl import Hardware, Resctrl, Throttle, Ways
from tests.host.resctrl.kept import CDP, MBPS

NARROW = Hardware(l3=Ways(bits=8, ids=(0, 4), closids=4, min_bits=2))
SPARSE = Hardware(l3=Ways(sparse=True))
AMD = Hardware(l3=Ways(min_bits=0), throttle=Throttle("AMD", 0, 1, 16))


def refusal(resctrl: Resctrl, path: str, text: str) -> tuple[str, str]:
    with pytest.raises(OSError) as error:  # noqa: PT011 - its errno is compared
        resctrl.write(path, text)
    name = errno.errorcode[error.value.errno or 0]
    return name, resctrl.read("info/last_cmd_status").strip()


@pytest.mark.parametrize(
    ("hardware", "text", "status"),
    [
        pytest.param(NARROW, "L3:0=f", "ok", id="no end of the line"),
        pytest.param(NARROW, "L3\n", "Missing ':'", id="no colon"),
        pytest.param(NARROW, "L3:\n", "Missing 'L3' value", id="nothing after it"),
        pytest.param(
            NARROW,
            "L2:0=f\n",
            "Unknown or unsupported resource name 'L2'",
            id="another resource",
        ),
        pytest.param(
            NARROW,
            "L3:0\n",
            "Missing '=' or non-numeric domain",
            id="a domain without value",
        ),
        pytest.param(NARROW, "L3:1=f\n", "ok", id="a cache that is not there"),
        pytest.param(NARROW, "L3:0=f;0=f\n", "Duplicate domain 0", id="a domain twice"),
        pytest.param(
            NARROW,
            "L3:0=f\nL3:0=f\n",
            "Duplicate domain 0",
            id="a domain on two lines",
        ),
        pytest.param(
            NARROW, "L3:0=xyz\n", "Non-hex character in the mask xyz", id="no mask"
        ),
        pytest.param(NARROW, "L3:0=0\n", "Mask out of range", id="no bits"),
        pytest.param(NARROW, "L3:0=1ff\n", "Mask out of range", id="bits too high"),
        pytest.param(
            NARROW,
            "L3:0=33\n",
            "The mask 33 has non-consecutive 1-bits",
            id="a mask with a hole",
        ),
        pytest.param(
            NARROW,
            "L3:0=10\n",
            "Need at least 2 bits in the mask",
            id="fewer bits than the hardware takes",
        ),
        pytest.param(
            NARROW,
            "MB:0=5\n",
            "MB value 5 out of range [10,100]",
            id="less bandwidth than there is",
        ),
        pytest.param(
            NARROW, "MB:0=max\n", "Invalid MB value max", id="bandwidth in words"
        ),
        pytest.param(
            CDP,
            "L3:0=f\n",
            "Unknown or unsupported resource name 'L3'",
            id="both halves at once where they are apart",
        ),
        pytest.param(
            MBPS,
            "MB:0=4294967296\n",
            "Invalid MB value 4294967296",
            id="more than the software controller can count",
        ),
    ],
)
def test_bad_lines_are_refused_and_nothing_is_changed(
    hardware: Hardware, text: str, status: str
) -> None:
    resctrl = Resctrl(hardware)
    before = resctrl.picture()

    assert refusal(resctrl, "schemata", text) == ("EINVAL", status)
    good_first = "MB:0=50\n" + text
    assert refusal(resctrl, "schemata", good_first) == ("EINVAL", status)
    assert resctrl.picture() == before


@pytest.mark.parametrize(
    ("hardware", "text", "shown"),
    [
        pytest.param(
            Hardware(),
            "L3:1=0xf0\n  MB: 0 = 33\n",
            "L3:0=fffff;1=000f0\nMB:0=   40;1=  100\n",
            id="some domains only, a bandwidth rounded up",
        ),
        pytest.param(
            SPARSE,
            "L3:0=10101\n",
            "L3:0=10101;1=fffff\nMB:0=  100;1=  100\n",
            id="holes where the hardware takes them",
        ),
        pytest.param(
            AMD,
            "L3:0=0\nMB:1=17\n",
            "L3:0=00000;1=fffff\nMB:0= 2048;1=   17\n",
            id="AMD takes empty masks, and counts in eighths of GB/s",
        ),
        pytest.param(
            CDP,
            "L3CODE:0=f\n",
            "L3CODE:0=0000f;1=fffff\nL3DATA:0=fffff;1=fffff\n    MB:0=  100;1=  100\n",
            id="code without data",
        ),
        pytest.param(
            MBPS,
            "MB:0=33\n",
            "L3:0=fffff;1=fffff\nMB:0=   33;1=4294967295\n",
            id="MiB/s are not rounded",
        ),
    ],
)
def test_good_lines_are_shown_as_the_kernel_does(
    hardware: Hardware, text: str, shown: str
) -> None:
    resctrl = Resctrl(hardware)
    resctrl.write("schemata", text)

    lines = [line.lstrip() for line in resctrl.read("schemata").splitlines()]
    assert lines == [line.lstrip() for line in shown.splitlines()]


@pytest.mark.parametrize(
    ("hardware", "groups", "status"),
    [
        pytest.param(NARROW, 3, "Out of CLOSIDs", id="the fewest of all resources"),
        pytest.param(
            Hardware(l3=Ways(closids=8), throttle=None, options=frozenset({"cdp"})),
            3,
            "Out of CLOSIDs",
            id="code and data take two each",
        ),
        pytest.param(Hardware(rmids=3), 2, "Out of RMIDs", id="counters, too"),
    ],
)
def test_groups_run_out(hardware: Hardware, groups: int, status: str) -> None:
    resctrl = Resctrl(hardware)
    for number in range(groups):
        resctrl.mkdir(f"group{number}")
    with pytest.raises(OSError, match="No space left"):
        resctrl.mkdir("one-more")

    assert resctrl.read("info/last_cmd_status") == f"{status}\n"
    assert len(resctrl.names("")) == len(Resctrl(hardware).names("")) + groups


def test_monitoring_groups_take_the_same_counters() -> None:
    resctrl = Resctrl(Hardware(rmids=3))
    resctrl.mkdir("mon_groups/pod1")
    resctrl.mkdir("gold")
    with pytest.raises(OSError, match="No space left"):
        resctrl.mkdir("gold/mon_groups/pod2")
    resctrl.rmdir("mon_groups/pod1")
    resctrl.mkdir("gold/mon_groups/pod2")


def test_a_group_that_shares_with_nothing_keeps_others_off_its_bits() -> None:
    resctrl = Resctrl()
    resctrl.mkdir("alone")
    with pytest.raises(OSError, match="Invalid argument"):
        resctrl.write("alone/mode", "exclusive\n")
    resctrl.write("schemata", "L3:0=0ffff;1=0ffff\n")
    resctrl.write("alone/schemata", "L3:0=f0000;1=f0000\n")
    resctrl.write("alone/mode", "exclusive\n")
    resctrl.mkdir("gold")

    assert resctrl.read("gold/schemata").splitlines()[0] == "L3:0=0ffff;1=0ffff"
    assert refusal(resctrl, "gold/schemata", "L3:1=10000\n") == (
        "EINVAL",
        "Overlaps with exclusive group",
    )
    assert refusal(resctrl, "alone/schemata", "L3:1=f8000\n") == (
        "EINVAL",
        "Overlaps with other group",
    )


def test_there_is_no_group_where_all_bits_belong_to_another_alone() -> None:
    resctrl = Resctrl(NARROW)
    resctrl.mkdir("alone")
    resctrl.write("alone/schemata", "L3:0=fe;4=fe\n")
    resctrl.state.groups[""].values["L3"] = {0: 1, 4: 1}
    resctrl.write("alone/mode", "exclusive\n")
    with pytest.raises(OSError, match="No space left"):
        resctrl.mkdir("gold")
    assert resctrl.read("info/last_cmd_status") == "No space on L3:0\n"


def test_a_thread_is_in_one_group_and_falls_to_the_one_above() -> None:
    resctrl = Resctrl()
    for path in ("gold", "silver", "gold/mon_groups/pod1"):
        resctrl.mkdir(path)
    resctrl.start(10)
    resctrl.write("gold/tasks", "10\n")
    resctrl.write("gold/mon_groups/pod1/tasks", "10\n")
    resctrl.start(11, parent=10)

    assert resctrl.read("gold/mon_groups/pod1/tasks") == "10\n11\n"
    assert resctrl.read("gold/tasks") == "10\n11\n"
    assert resctrl.read("tasks") == ""
    resctrl.write("silver/tasks", "11\n")
    assert resctrl.read("gold/tasks") == "10\n"
    status = "Can't move task to different control group"
    to_gold = refusal(resctrl, "gold/mon_groups/pod1/tasks", "11\n")
    assert to_gold == ("EINVAL", status)
    assert refusal(resctrl, "gold/tasks", "12\n") == ("ESRCH", "No task 12")
    resctrl.rmdir("gold/mon_groups/pod1")
    assert resctrl.read("gold/tasks") == "10\n"
    resctrl.rmdir("gold")
    assert resctrl.read("tasks") == "10\n"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("gold", "File exists", id="a group twice"),
        pytest.param("info", "File exists", id="a folder of the kernel"),
        pytest.param("gold/more", "not permitted", id="a group in a group"),
        pytest.param("info/L3/more", "not permitted", id="among the facts"),
        pytest.param("silver/mon_groups/x", "No such file", id="nowhere"),
    ],
)
def test_groups_are_made_where_groups_may_be(path: str, why: str) -> None:
    resctrl = Resctrl()
    resctrl.mkdir("gold")
    with pytest.raises(OSError, match=why):
        resctrl.mkdir(path)
