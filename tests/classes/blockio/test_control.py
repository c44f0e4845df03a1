"""The part of a policy's document that is about block I/O."""

from __future__ import annotations

import pytest
import yaml

from nri_resmgr.classes.blockio import IoLimits, ParameterSet
from nri_resmgr.config import BadSetting
from nri_resmgr.config.blockio import BlockIoControl, read_block_io_control
from nri_resmgr.config.table import Table


def read(text: str) -> BlockIoControl:
    return read_block_io_control(Table("$.control", yaml.safe_load(text)))


@pytest.mark.parametrize(
    ("text", "control"),
    [
        pytest.param("{}", BlockIoControl(), id="nothing said, nothing done"),
        pytest.param(
            "blockio: {enable: true, usePodQoSAsDefaultClass: true}",
            BlockIoControl(enabled=True, by_qos=True),
            id="nri-plugins' document: the runtime knows the classes",
        ),
        pytest.param(
            "blockio: {enable: true, classes: {a: [{weight: 10}], b: null}}",
            BlockIoControl(
                enabled=True, classes={"a": (ParameterSet((), IoLimits(10)),), "b": ()}
            ),
            id="classes of our own",
        ),
        pytest.param(
            "blockio: {enable: true, classes: {}}",
            BlockIoControl(enabled=True, classes={}),
            id="no classes is something else than not saying which",
        ),
    ],
)
def test_control_is_read(text: str, control: BlockIoControl) -> None:
    assert read(text) == control


def test_a_mistake_in_a_class_is_reported_with_its_place() -> None:
    with pytest.raises(BadSetting) as error:
        read("blockio: {classes: {a: [{Weight: 5}]}}")

    where = "$.control.blockio.classes.a[0].Weight"
    assert str(error.value) == f"{where}: expected 10 to 1000, not 5"
