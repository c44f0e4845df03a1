"""When a certificate is valid: the two dates of an X.509 certificate in PEM."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from nri_resmgr.values import InputError

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"

# Tags of DER.
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_TIME: Final = 0x18

_SHORT: Final = 0x80  # a length below this is one byte
_MOST_LENGTH: Final = 4  # bytes of a length


@dataclass(eq=False)
class BadCertificate(InputError):
    """A text is no certificate."""

    why: str

    def __str__(self) -> str:
        return f"not a certificate: {self.why}"


class Validity(msgspec.Struct, frozen=True):
    """The dates of a certificate.

    Attributes:
        since: It is not valid before.
        until: It is not valid after.
    """

    since: datetime
    until: datetime

    def at(self, share: float) -> datetime:
        """Return the moment after a share of its life.

        >>> life = Validity(datetime(2026, 1, 1), datetime(2026, 1, 11))
        >>> life.at(0.5).isoformat()
        '2026-01-06T00:00:00'
        """
        return self.since + (self.until - self.since) * share


def first_validity(pem: str) -> Validity:
    """Return the dates of the first certificate in a text.

    Raises:
        BadCertificate: There is none.

    Source:
        RFC 5280, 4.1.
    """
    begin, end = pem.find(_BEGIN), pem.find(_END)
    if begin < 0 or end < begin:
        raise BadCertificate("there is none in the text")
    try:
        der = ssl.PEM_cert_to_DER_cert(pem[begin : end + len(_END)])
        return _validity(der)
    # Also of base64, of dates, and of what ends early.
    except (ValueError, IndexError) as error:
        raise BadCertificate(str(error)) from None


def _validity(der: bytes) -> Validity:
    certificate = _content(der, _SEQUENCE)[0]
    rest = _content(certificate, _SEQUENCE)[0]
    if rest[0] == _VERSION:
        rest = _content(rest, _VERSION)[1]
    for _ in ("serial number", "signature", "issuer"):
        rest = _content(rest, rest[0])[1]
    dates = _content(rest, _SEQUENCE)[0]
    since, dates = _date(dates)
    until, _ = _date(dates)
    return Validity(since, until)


def _date(data: bytes) -> tuple[datetime, bytes]:
    tag = data[0]
    if tag not in (_UTC_TIME, _TIME):
        raise ValueError(f"tag {tag} instead of a date")
    content, rest = _content(data, tag)
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = f"{'19' if text[:1] >= '5' else '20'}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC), rest


def _content(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the content of the first element, and what follows it."""
    if data[0] != tag:
        raise ValueError(f"tag {data[0]} instead of {tag}")
    length, begin = data[1], 2
    if length >= _SHORT:
        count = length - _SHORT
        if not 0 < count <= _MOST_LENGTH:
            raise ValueError(f"{count} bytes of length")
        length, begin = int.from_bytes(data[2 : 2 + count]), 2 + count
    if begin + length > len(data):
        raise ValueError("it ends early")
    return data[begin : begin + length], data[begin + length :]
