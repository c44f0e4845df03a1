"""What holds for all classes and machines."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.blockio import (
    BlockIoClass,
    Features,
    IoLimits,
    ParameterSet,
    changes,
    patterns_of,
    resolve,
)
from tests.classes.blockio.kernel_cgroup import KernelCgroup
from tests.classes.blockio.samples import CGROUPS, DEVICES, devices_of

PATTERNS = ("/dev/sda", "/dev/sdb", "/dev/sd?", "/dev/sd[aq]", "/dev/vda", "/dev/none")
FIELDS = ("weight", "read_bps", "write_bps", "read_iops", "write_iops")

rates = st.none() | st.sampled_from([0, 1, 500, (1 << 32) - 2, (1 << 32) - 1, 1 << 40])
weights = st.none() | st.integers(10, 1000)
sets = st.builds(
    ParameterSet,
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2).map(tuple),
    st.builds(IoLimits, weights, rates, rates, rates, rates),
) | st.builds(ParameterSet, st.just(()), st.builds(IoLimits, weights))
classes = st.lists(sets, max_size=4).map(tuple)
cgroups = st.sampled_from(list(CGROUPS.values()))


def class_of(some: tuple[ParameterSet, ...]) -> BlockIoClass:
    config = {"some": some}
    found = {pattern: devices_of(pattern) for pattern in patterns_of(config)}
    return resolve(config, found)["some"]


@given(classes)
def test_the_last_entry_for_each_parameter_of_each_device_wins(
    some: tuple[ParameterSet, ...],
) -> None:
    found = class_of(some)

    expected: dict[str, dict[str, Any]] = {}
    for name, device in DEVICES.items():
        naming = [
            one
            for one in some
            if any(device in devices_of(pattern).devices for pattern in one.patterns)
        ]
        if naming:
            expected[name] = {
                field: next(
                    (
                        said
                        for one in reversed(naming)
                        if (said := getattr(one.limits, field)) is not None
                    ),
                    None,
                )
                for field in FIELDS
            }
    sent = {
        one.device.name: {field: getattr(one.limits, field) for field in FIELDS}
        for one in found.devices
    }
    assert sent == expected
    plain = [one.limits.weight for one in some if not one.patterns]
    said = [weight for weight in plain if weight is not None]
    assert found.weight == (said[-1] if said else None)


@given(classes, cgroups)
def test_the_kernel_takes_every_line(
    some: tuple[ParameterSet, ...], features: Features
) -> None:
    KernelCgroup(features).write_all(class_of(some).files(features))


@given(classes, classes, cgroups)
def test_a_change_leads_where_a_new_container_would_be(
    first: tuple[ParameterSet, ...],
    second: tuple[ParameterSet, ...],
    features: Features,
) -> None:
    old, new = class_of(first), class_of(second)
    changed, fresh = KernelCgroup(features), KernelCgroup(features)
    changed.write_all(old.files(features))
    changed.write_all(changes(old, new, features))
    fresh.write_all(new.files(features))

    assert changed.values == fresh.values


@given(classes, cgroups)
def test_leaving_a_class_leaves_nothing(
    some: tuple[ParameterSet, ...], features: Features
) -> None:
    cgroup = KernelCgroup(features)
    cgroup.write_all(changes(None, class_of(some), features))
    cgroup.write_all(changes(class_of(some), None, features))

    assert cgroup.values == {}


@given(classes, cgroups)
def test_no_change_writes_nothing(
    some: tuple[ParameterSet, ...], features: Features
) -> None:
    assert changes(class_of(some), class_of(some), features) == {}


@given(classes, cgroups, st.booleans())
def test_the_runtime_and_we_together_write_everything(
    some: tuple[ParameterSet, ...],
    features: Features,
    by_line: bool,  # noqa: FBT001 - hypothesis hands it over
) -> None:
    sent = class_of(some).unified(features, by_line=by_line)
    runtime = KernelCgroup(features)
    for file, text in sent.values.items():
        # An old runc and crun write a value as it is.
        for line in text.split("\n") if by_line else [text]:
            runtime.write(file, line)
    runtime.write_all(sent.rest)
    at_once = KernelCgroup(features)
    at_once.write_all(class_of(some).files(features))

    assert runtime.values == at_once.values
    assert not (by_line and features.is_v2 and sent.rest)
    assert features.is_v2 or not sent.values


@given(classes)
def test_weights_keep_their_order(some: tuple[ParameterSet, ...]) -> None:
    v2 = CGROUPS["v2"]
    texts = [int(v2.weight_text(weight)) for weight in range(10, 1001)]

    assert texts == sorted(set(texts))
