"""What mounts and folders say that a machine can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.classes.rdt.capabilities import (
    Bandwidth,
    BandwidthMode,
    Capabilities,
    RdtCache,
)
from nri_resmgr.classes.rdt.plan import Plan
from nri_resmgr.host.mounts import ResctrlMount, find_resctrl_mount
from nri_resmgr.host.resctrl import RdtControl
from nri_resmgr.host.resctrl.errors import ResctrlNotMounted
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import BadHostFile, HostTree, MissingHostFile
from nri_resmgr.testing.resctrl import Hardware, Resctrl, Throttle, Ways


def control_of(root: Path) -> RdtControl:
    return RdtControl.open(HostTree(root), StateDir.open(f"{root}/state"))


@pytest.mark.parametrize(
    ("hardware", "capabilities"),
    [
        pytest.param(
            Hardware(),
            Capabilities(
                {"L3": RdtCache(0xFFFFF, 1, False, 16, (0, 1))},
                Bandwidth(BandwidthMode.PERCENT, 10, 10, 100, 8, (0, 1)),
            ),
            id="Intel, percent",
        ),
        pytest.param(
            Hardware(
                l2=Ways(8, (0, 1, 2, 3), 8, 2, sparse=True),
                options=frozenset({"cdp", "mba_MBps"}),
            ),
            Capabilities(
                {
                    "L2": RdtCache(0xFF, 2, True, 8, (0, 1, 2, 3)),
                    "L3CODE": RdtCache(0xFFFFF, 1, False, 8, (0, 1)),
                    "L3DATA": RdtCache(0xFFFFF, 1, False, 8, (0, 1)),
                },
                Bandwidth(BandwidthMode.MBPS, 0, 1, (1 << 32) - 1, 8, (0, 1)),
            ),
            id="two halves, MiB/s",
        ),
        pytest.param(
            Hardware(
                l3=Ways(16, (0, 5), 16, 0), throttle=Throttle("AMD", 0, 1, 16), rmids=0
            ),
            Capabilities(
                {"L3": RdtCache(0xFFFF, 0, False, 16, (0, 5))},
                Bandwidth(BandwidthMode.AMD, 0, 1, 2048, 16, (0, 5)),
            ),
            id="AMD, gaps between ids, nothing counted",
        ),
        pytest.param(
            Hardware(l3=None, throttle=None),
            Capabilities({}),
            id="counters only",
        ),
    ],
)
def test_capabilities_are_read_from_plain_files(
    hardware: Hardware, capabilities: Capabilities, tmp_path: Path
) -> None:
    Resctrl(hardware).write_out(tmp_path)

    assert control_of(tmp_path).capabilities() == capabilities


def test_old_kernels_have_fewer_files(tmp_path: Path) -> None:
    Resctrl(Hardware(throttle=None)).write_out(tmp_path)
    root = tmp_path / "sys/fs/resctrl"
    (root / "info/L3/sparse_masks").unlink()
    (root / "mode").unlink()
    control = control_of(tmp_path)

    assert control.capabilities().caches["L3"].sparse is False
    assert control.schemata_of("") == "L3:0=fffff;1=fffff\n"


def test_devices_may_have_a_closid_of_their_own(tmp_path: Path) -> None:
    Resctrl(Hardware(throttle=None)).write_out(tmp_path)
    (tmp_path / "sys/fs/resctrl/info/L3/io_alloc").write_text("enabled\n")
    capabilities = control_of(tmp_path).capabilities()

    assert (capabilities.io_alloc, capabilities.closids) == (True, 15)


@pytest.mark.parametrize(
    ("file", "text", "kind", "sentence"),
    [
        pytest.param(
            "info/L3/cbm_mask",
            "many\n",
            BadHostFile,
            "info/L3/cbm_mask: not a number: 'many'",
            id="no number",
        ),
        pytest.param(
            "info/MB/min_bandwidth",
            None,
            MissingHostFile,
            "info/MB/min_bandwidth: no such file",
            id="no file",
        ),
        pytest.param(
            "schemata",
            "L3:0=xyz\n",
            BadHostFile,
            "schemata: invalid literal for int() with base 16: 'xyz'",
            id="no schemata",
        ),
    ],
)
def test_malformed_files_are_reported(
    file: str, text: str | None, kind: type[Exception], sentence: str, tmp_path: Path
) -> None:
    Resctrl().write_out(tmp_path)
    path = tmp_path / "sys/fs/resctrl" / file
    path.unlink() if text is None else path.write_text(text)

    with pytest.raises(kind) as error:
        control_of(tmp_path).capabilities()
    assert str(error.value) == f"{tmp_path}/sys/fs/resctrl/{sentence}"


@pytest.mark.parametrize(
    ("tables", "mount"),
    [
        pytest.param(
            {"mounts": "resctrl /sys/fs/resctrl resctrl rw,cdp,mba_MBps 0 0\n"},
            ResctrlMount("/sys/fs/resctrl", ("rw", "cdp", "mba_MBps")),
            id="with options",
        ),
        pytest.param(
            {"mounts": "none /mnt/my\\040rdt resctrl rw 0 0\n"},
            ResctrlMount("/mnt/my rdt", ("rw",)),
            id="elsewhere, with a blank",
        ),
        pytest.param(
            {
                "1/mounts": "resctrl /sys/fs/resctrl resctrl rw 0 0\n",
                "mounts": "resctrl /mnt resctrl rw 0 0\n",
            },
            ResctrlMount("/sys/fs/resctrl", ("rw",)),
            id="as the host's first process sees it",
        ),
        pytest.param(
            {"mounts": "resctrl /mnt tmpfs rw 0 0\n"}, None, id="by name only"
        ),
        pytest.param({}, None, id="no table"),
    ],
)
def test_the_mount_is_taken_from_its_row(
    tables: dict[str, str], mount: ResctrlMount | None, tmp_path: Path
) -> None:
    for name, text in tables.items():
        path = tmp_path / "proc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert find_resctrl_mount(HostTree(tmp_path)) == mount


def test_without_a_mount_the_error_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ResctrlNotMounted) as error:
        control_of(tmp_path)

    assert str(error.value) == (
        "/proc/mounts: resctrl is not mounted; if the CPU has RDT, run "
        "mount -t resctrl resctrl /sys/fs/resctrl"
    )


def boot(root: Path, boot_id: str) -> None:
    path = root / "proc/sys/kernel/random/boot_id"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{boot_id}\n")


@pytest.mark.parametrize(
    ("boot_id", "restored"),
    [
        pytest.param("one", "L3:0=fffff;1=fffff\n", id="the same boot"),
        pytest.param("two", "L3:0=f;1=fffff\n", id="another boot"),
    ],
)
def test_a_journal_is_good_for_one_boot(
    boot_id: str, restored: str, tmp_path: Path
) -> None:
    Resctrl(Hardware(throttle=None)).write_out(tmp_path)
    boot(tmp_path, "one")
    control = control_of(tmp_path)
    control.apply(Plan({}, root="L3:0=f\n"))
    schemata = tmp_path / "sys/fs/resctrl/schemata"
    schemata.write_text("L3:0=f;1=fffff\n")  # a plain file forgets the other cache
    boot(tmp_path, boot_id)
    control_of(tmp_path).restore()

    assert schemata.read_text() == restored
