"""RDT and block I/O classes of documents, held against a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.app.configuration.build import build_policy, host_warnings
from nri_resmgr.config import BadSetting
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policies import parse_config
from nri_resmgr.testing.resctrl import Hardware, Resctrl
from nri_resmgr.topology.synthetic import parse_spec
from tests.app.class_rig import files_of
from tests.app.node import config

ROOT = Path(__file__).parents[2]
MACHINE = parse_spec("1s2n4c1t")
RDT = "$.spec.control.rdt"
NOT_MOUNTED = (
    "/proc/mounts: resctrl is not mounted; if the CPU has RDT, run "
    "mount -t resctrl resctrl /sys/fs/resctrl"
)
NO_FILE = "io.weight: cgroups of this host have no such file, so it is not set"


def warnings(host: Path, spec: str) -> tuple[tuple[str, str], ...]:
    document = parse_config(config(spec))
    return host_warnings(document, MACHINE, HostTree(str(host)))


def rdt(rest: str) -> str:
    return f"{{control: {{rdt: {{enable: true, {rest}}}}}}}"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    Resctrl(Hardware()).write_out(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            "partitions: {p: {l3Allocation: '0xfffff0'}}",
            f"{RDT}.partitions.p.l3Allocation: RDT partition 'p', L3, cache id 0: "
            "mask 0xfffff0 is not within cbm_mask 0xfffff",
            id="bits that the cache has not",
        ),
        pytest.param(
            "options: {l2: {optional: false}}, "
            "partitions: {p: {l2Allocation: 50%, classes: {c: {l2Allocation: 50%}}}}",
            f"{RDT}.partitions.p.classes.c.l2Allocation: RDT partition 'p', class 'c', "
            "L2: this machine allocates none of it; ",
            id="a cache that has to be there",
        ),
        pytest.param(
            "partitions: {p: {classes: {"
            + ", ".join(f"c{number}: {{}}" for number in range(20))
            + "}}}",
            f"{RDT}.partitions: 20 RDT classes need a group, and only ",
            id="more classes than closids",
        ),
    ],
)
def test_a_document_with_unsupported_classes_is_refused(
    host: Path, spec: str, why: str
) -> None:
    with pytest.raises(BadSetting) as found:
        warnings(host, rdt(spec))

    assert str(found.value).startswith(why)


def test_unsupported_optional_settings_are_a_warning(host: Path) -> None:
    spec = rdt("partitions: {p: {l2Allocation: 50%, classes: {c: {}}}}")
    ((path, why),) = warnings(host, spec)

    assert path == f"{RDT}.partitions"
    assert "L2" in why


def test_a_machine_with_all_features_has_no_warnings(host: Path) -> None:
    spec = rdt("partitions: {p: {l3Allocation: 50%, classes: {c: {}}}}")

    assert warnings(host, spec) == ()


@pytest.mark.parametrize("rest", ["", "partitions: {p: {classes: {c: {}}}}"])
def test_a_machine_without_resctrl_accepts_optional_settings(
    tmp_path: Path, rest: str
) -> None:
    assert warnings(tmp_path, rdt(rest)) == ((RDT, NOT_MOUNTED),)


def test_a_machine_without_resctrl_refuses_required_settings(tmp_path: Path) -> None:
    rest = (
        "options: {l3: {optional: false}}, "
        "partitions: {p: {l3Allocation: 50%, classes: {c: {l3Allocation: 50%}}}}"
    )
    with pytest.raises(BadSetting):
        warnings(tmp_path, rdt(rest))


def test_a_malformed_file_of_resctrl_is_a_warning(host: Path) -> None:
    (host / "sys/fs/resctrl/info/L3/cbm_mask").write_text("many\n")
    ((path, why),) = warnings(host, rdt("partitions: {p: {classes: {c: {}}}}"))

    assert path == RDT
    assert "info/L3/cbm_mask" in why


def test_missing_devices_and_files_are_warnings(tmp_path: Path) -> None:
    files_of(tmp_path, {"sys/fs/cgroup/cgroup.controllers": "cpu"})
    classes = "slow: [{Weight: 50}, {Devices: [/dev/sd?], ThrottleReadBps: 1}]"
    spec = f"{{control: {{blockio: {{enable: true, classes: {{{classes}}}}}}}}}"

    path = "$.spec.control.blockio.classes.slow"
    assert warnings(tmp_path, spec) == (
        (path, "/dev/sd?: matches no file"),
        (path, NO_FILE),
    )


def test_the_sample_of_conf_d_fits_a_machine_with_rdt(host: Path) -> None:
    text = (ROOT / "conf.d" / "rdt-and-blockio.conf").read_text(encoding="utf-8")
    document, tree = parse_config(text), HostTree(str(host))

    build_policy(document, MACHINE, tree)
    paths = {path for path, _ in host_warnings(document, MACHINE, tree)}
    assert paths == {"$.spec.control.blockio.classes.BestEffort"}
