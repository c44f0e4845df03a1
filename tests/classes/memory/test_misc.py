"""Limits of the misc controller's resources, from annotations to lines."""

from __future__ import annotations

import pytest

from nri_resmgr.classes.memory import misc_files, misc_limits, read_capacity
from nri_resmgr.classes.unified import Unified, as_unified
from nri_resmgr.values import ResmgrError

EPC = "epc-limit.nri.io"
MISC = "misc-limit.resource-policy.nri.io"


@pytest.mark.parametrize(
    ("annotations", "limits"),
    [
        pytest.param({}, {}, id="nothing asked"),
        pytest.param({EPC: "65536"}, {"sgx_epc": "65536"}, id="bytes of SGX memory"),
        pytest.param({EPC: "0"}, {"sgx_epc": "0"}, id="none at all"),
        pytest.param({EPC: "64Ki"}, {"sgx_epc": "65536"}, id="a quantity"),
        pytest.param({EPC: "max"}, {"sgx_epc": "max"}, id="no limit"),
        pytest.param(
            {EPC: "1", f"{EPC}/pod": "2"}, {"sgx_epc": "2"}, id="the pod goes first"
        ),
        pytest.param(
            {EPC: "1", f"{EPC}/pod": "2", f"{EPC}/container.web": "3"},
            {"sgx_epc": "3"},
            id="the container goes before all",
        ),
        pytest.param({f"{EPC}/container.db": "3"}, {}, id="another container's"),
        pytest.param(
            {EPC: "1", f"{EPC}/container.web": ""}, {}, id="an empty one takes it away"
        ),
        pytest.param(
            {MISC: "tdx 2, sev_es=4"}, {"sev_es": "4", "tdx": "2"}, id="by their names"
        ),
        pytest.param({MISC: " sev  1k ,"}, {"sev": "1000"}, id="blanks do no harm"),
        pytest.param(
            {MISC: "sev 1", f"{MISC}/container.web": "tdx max"},
            {"tdx": "max"},
            id="the narrower list counts as a whole",
        ),
        pytest.param({MISC: ""}, {}, id="an empty list"),
        pytest.param(
            {MISC: "sgx_epc 1, sev 5", EPC: "2"},
            {"sev": "5", "sgx_epc": "2"},
            id="what is said of SGX alone goes before the list",
        ),
    ],
)
def test_annotations_limit(annotations: dict[str, str], limits: dict[str, str]) -> None:
    found = misc_limits(annotations, "web")

    assert found == limits
    assert list(found) == sorted(limits)


@pytest.mark.parametrize(
    ("annotations", "complaint"),
    [
        pytest.param(
            {EPC: "-1"},
            "annotation epc-limit.nri.io: '-1' is no limit: bad quantity '-1': "
            "negative; expected a quantity or max",
            id="a negative number",
        ),
        pytest.param(
            {f"{EPC}/pod": "much"},
            "annotation epc-limit.nri.io/pod: 'much' is no limit: bad quantity 'much': "
            "not a number with a Kubernetes suffix; expected a quantity or max",
            id="no number",
        ),
        pytest.param(
            {MISC: "sev"},
            f"annotation {MISC}: 'sev' is not a list of limits, each resource once: "
            "sev_es 4, tdx 2",
            id="no amount",
        ),
        pytest.param(
            {MISC: "sev 1, sev 2"},
            f"annotation {MISC}: 'sev 1, sev 2' is not a list of limits, each resource "
            "once: sev_es 4, tdx 2",
            id="twice the same",
        ),
        pytest.param(
            {MISC: "sev 1\ntdx 2"},
            f"annotation {MISC}: 'sev 1\\ntdx 2' is not a list of limits, each "
            "resource once: sev_es 4, tdx 2",
            id="lines",
        ),
    ],
)
def test_a_mistake_is_reported(annotations: dict[str, str], complaint: str) -> None:
    with pytest.raises(ResmgrError) as error:
        misc_limits(annotations, "web")

    assert str(error.value) == complaint


def test_each_limit_is_a_line_that_the_kernel_reads_alone() -> None:
    files = misc_files({"sev": "5", "sgx_epc": "2"}, ("sgx_epc", "sev"), "web")

    assert files == {"misc.max": ("sev 5", "sgx_epc 2")}
    assert as_unified(files, by_line=False) == Unified(
        {"misc.max": "sev 5"}, {"misc.max": ("sgx_epc 2",)}
    )
    assert misc_files({}, (), "web") == {}


@pytest.mark.parametrize(
    ("capacity", "counted"),
    [
        pytest.param("sev 10\nsev_es 4\n", "sev, sev_es", id="other resources"),
        pytest.param("", "nothing", id="no resources"),
        pytest.param(None, "nothing", id="no misc controller"),
    ],
)
def test_a_resource_that_the_machine_does_not_count_is_refused(
    capacity: str | None, counted: str
) -> None:
    with pytest.raises(ResmgrError) as error:
        misc_files({"sgx_epc": "1"}, read_capacity(capacity), "default/shop/web")

    assert str(error.value) == (
        "default/shop/web limits sgx_epc in misc.max; this machine counts "
        f"{counted} (misc.capacity); to help, remove the annotation"
    )
