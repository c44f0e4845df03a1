from __future__ import annotations

from pathlib import Path

import pytest

from tests.qemu.boots import BOOT_SECONDS, BUILD_SECONDS, boot
from tests.qemu.machine import SYSTEMD

_FOLDER = "tests/qemu/boot_tests"


@pytest.mark.qemu
@pytest.mark.xdist_group("boots")
@pytest.mark.timeout(BUILD_SECONDS + 2 * BOOT_SECONDS)
def test_systemd(tmp_path: Path, subtests: pytest.Subtests) -> None:
    ran = boot(SYSTEMD, (_FOLDER,), tmp_path / "guest", subtests)

    assert len(ran) == 8
