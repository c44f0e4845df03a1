"""The life of certificates: no API server or replica ever lacks what it needs."""

from __future__ import annotations

import contextlib
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.webhook.own_certificates.openssl import OpensslFailed, make_pair
from nri_resmgr.webhook.own_certificates.plan import (
    Pair,
    Step,
    Stored,
    after,
    next_step,
)
from nri_resmgr.webhook.x509 import BadCertificate, first_validity
from tests.webhook.rig import NAME, new_pair

DAY = timedelta(days=1)


@cache
def certificate(days: int, number: int = 0) -> Pair:
    """One of some certificates of a life; begins now."""
    return new_pair(days)


def made() -> datetime:
    validity = certificate(30).validity
    assert validity is not None
    return validity.since


@pytest.mark.parametrize(
    ("lives", "days", "is_known", "step"),
    [
        # Days of the current and the following one, and the CA of the former one.
        ((0, 0, ""), 0, False, Step.MAKE_CURRENT),
        ((30, 0, ""), 1, True, Step.NOTHING),
        ((30, 0, ""), 19.9, True, Step.NOTHING),
        ((30, 0, ""), 20.1, False, Step.MAKE_FOLLOWING),
        ((30, 0, ""), 31, False, Step.MAKE_CURRENT),
        ((30, 60, ""), 20, False, Step.NOTHING),
        ((30, 60, ""), 20, True, Step.USE_FOLLOWING),
        # It is late, and better at once than never.
        ((30, 60, ""), 31, False, Step.USE_FOLLOWING),
        ((0, 60, ""), 1, False, Step.USE_FOLLOWING),
        ((30, 0, "old"), 1, False, Step.NOTHING),
        ((30, 0, "old"), 1, True, Step.FORGET_FORMER),
        ((60, 30, ""), 45, True, Step.MAKE_FOLLOWING),
    ],
)
def test_the_next_step(
    lives: tuple[int, int, str], days: float, step: Step, *, is_known: bool
) -> None:
    current, following = (certificate(one) if one else None for one in lives[:2])
    stored = Stored(current, following, lives[2])

    assert next_step(stored, made() + days * DAY, is_known=is_known) is step


def test_an_invalid_certificate_is_replaced() -> None:
    stored = Stored(Pair("a", "nonsense", "b"))

    assert next_step(stored, made(), is_known=True) is Step.MAKE_CURRENT


@pytest.mark.parametrize(
    ("minutes", "current", "following"),
    [
        pytest.param(4, Step.NOTHING, Step.USE_FOLLOWING, id="a little"),
        pytest.param(6, Step.MAKE_CURRENT, Step.MAKE_CURRENT, id="too far"),
    ],
)
def test_a_certificate_of_a_clock_that_is_ahead_is_replaced(
    minutes: int, current: Step, following: Step
) -> None:
    now = made() - timedelta(minutes=minutes)

    assert next_step(Stored(certificate(30)), now, is_known=True) is current
    stored = Stored(None, certificate(60))
    assert next_step(stored, now, is_known=True) is following


@given(st.lists(st.tuples(st.floats(0, 5), st.booleans()), max_size=40))
def test_each_certificate_in_use_was_trusted_before_and_is_after(
    rounds: list[tuple[float, bool]],
) -> None:
    """Without a step that comes too late, as from a node that was off for weeks."""
    stored, now, known = Stored(certificate(30)), made(), ""
    for days, is_known in rounds:
        now = now + days * DAY if stored.following is None else now
        if now >= made() + 29 * DAY:
            break
        known = stored.bundle if is_known or not known else known
        step = next_step(stored, now, is_known=known == stored.bundle)
        new = after(step, stored, certificate(60, 1))
        assert stored.current is not None
        assert new.current is not None
        # API servers trust it already, and replicas may show the one before.
        assert new.current.authority in known or new.current == stored.current
        assert stored.current.authority in new.bundle
        stored = new


def test_a_rotation_goes_through_all_steps() -> None:
    first, second = certificate(30), certificate(60)
    now = made() + 21 * DAY
    stored = Stored(first)
    bundles = []
    for step in (Step.MAKE_FOLLOWING, Step.USE_FOLLOWING, Step.FORGET_FORMER):
        assert next_step(stored, now, is_known=True) is step
        stored = after(step, stored, second)
        bundles.append(stored.bundle)
        now = made() + 2 * DAY  # of the second one

    assert stored == Stored(second)
    assert bundles == [
        first.authority + second.authority,
        second.authority + first.authority,
        second.authority,
    ]


def test_a_certificate_is_accepted_by_openssl(tmp_path: Path) -> None:
    pair = make_pair((NAME, "other.example"), 7)
    files = {}
    for name, text in (("ca", pair.authority), ("crt", pair.certificate)):
        files[name] = tmp_path / name
        files[name].write_text(text)

    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-text", "-in", files["crt"]],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    verified = subprocess.run(
        [
            *("openssl", "verify", "-x509_strict", "-purpose", "sslserver"),
            *("-verify_hostname", NAME, "-CAfile", files["ca"], files["crt"]),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert verified.returncode == 0, verified.stderr
    assert f"DNS:{NAME}, DNS:other.example" in shown
    assert "CA:FALSE" in shown
    assert "TLS Web Server Authentication" in shown


@pytest.mark.parametrize("days", [1, 90, 20_000])
def test_the_dates_are_those_that_openssl_shows(days: int) -> None:
    pair = make_pair((NAME,), days)
    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-dates"],
        input=pair.certificate,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    dates = [
        datetime.fromtimestamp(ssl.cert_time_to_seconds(line.partition("=")[2]), UTC)
        for line in shown
    ]
    found = first_validity(f"text before\n{pair.certificate}{pair.authority}")

    assert [found.since, found.until] == dates


@given(st.data())
def test_a_damaged_certificate_is_refused_or_read(data: st.DataObject) -> None:
    der = bytearray(ssl.PEM_cert_to_DER_cert(certificate(30).certificate))
    for _ in range(data.draw(st.integers(1, 4))):
        der[data.draw(st.integers(0, 120))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(der)))

    for found in (der, der[:cut]):
        with contextlib.suppress(BadCertificate):
            first_validity(ssl.DER_cert_to_PEM_cert(bytes(found)))


def test_a_name_that_openssl_does_not_take_is_its_error() -> None:
    with pytest.raises(OpensslFailed):
        make_pair(("a,b:c",), 7)
