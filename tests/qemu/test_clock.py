from __future__ import annotations

import platform

import pytest

from tests.qemu.clock import counter_khz, kernel_arguments

_MHZ = 1000


@pytest.mark.skipif(platform.machine() != "x86_64", reason="no time-stamp counter")
def test_the_counter_of_this_machine_has_one_speed() -> None:
    first, second = counter_khz(), counter_khz()

    assert 500 * _MHZ < first < 10_000 * _MHZ
    # The kernel measures again later, and takes what is within a hundredth of this.
    assert abs(first - second) < first / 100
    (argument,) = kernel_arguments()
    name, _, khz = argument.partition("=")
    assert name == "tsc_early_khz"
    assert abs(int(khz) - first) < first / 100
