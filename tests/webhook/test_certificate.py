"""The certificate of the server follows its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.webhook.certificate import CertificateFiles, LiveCertificate
from tests.webhook.rig import new_pair, write_pair


def live(folder: Path) -> LiveCertificate:
    return LiveCertificate(CertificateFiles(folder / "tls.crt", folder / "tls.key"))


def test_files_that_are_read_again_with_the_same_text_are_no_other_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair, certificate = new_pair(), live(tmp_path)
    for _ in range(3):
        write_pair(tmp_path, pair)
        certificate.look()

    assert certificate.changes == 1
    assert capsys.readouterr().out.count("webhook.certificate ") == 1


def test_the_former_certificate_is_put_in_use_again_after_a_bad_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair, certificate = new_pair(), live(tmp_path)
    write_pair(tmp_path, pair)
    certificate.look()
    (tmp_path / "tls.key").write_text("none")
    certificate.look()
    assert certificate.why_not
    write_pair(tmp_path, pair)
    certificate.look()

    assert not certificate.why_not
    assert capsys.readouterr().out.count("webhook.certificate ") == 2


def test_another_certificate_is_put_in_use(tmp_path: Path) -> None:
    certificate = live(tmp_path)
    for _ in range(2):
        write_pair(tmp_path, new_pair())
        certificate.look()

    assert certificate.changes == 2
