from __future__ import annotations

from pathlib import Path

import pytest

from tests.qemu.boots import BUILD_SECONDS, boot
from tests.qemu.machine import SYSTEMD

_FOLDER = "tests/qemu/boot_tests"
_BOOT_SECONDS = 600.0  # Several times what it takes beside another busy worker.


@pytest.mark.qemu
@pytest.mark.xdist_group("boots")
@pytest.mark.timeout(BUILD_SECONDS + 2 * _BOOT_SECONDS)
def test_systemd(tmp_path: Path, subtests: pytest.Subtests) -> None:
    ran = boot(SYSTEMD, (_FOLDER,), tmp_path / "guest", _BOOT_SECONDS, subtests)

    assert len(ran) == 7
