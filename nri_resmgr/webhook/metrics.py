"""Metrics of the webhook: the table of all, and their series."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator
from typing import Final

from nri_resmgr.app.metrics.text import Histogram, Kind, Metric, Series, single
from nri_resmgr.version import our_version
from nri_resmgr.webhook.certificate import LiveCertificate

BUILD: Final = Metric(
    "nri_resmgr_webhook_build_info",
    Kind.GAUGE,
    "1, with versions as labels.",
    ("version", "python"),
)
REVIEWS: Final = Metric(
    "nri_resmgr_webhook_reviews_total",
    Kind.COUNTER,
    "Reviews by path and result: annotated, current, not-concerned, unreadable or "
    "too-large of /mutate; valid, warned, refused, not-concerned or unreadable of "
    "/validate; bad for a request that is no review.",
    ("path", "result"),
)
SECONDS: Final = Metric(
    "nri_resmgr_webhook_review_seconds",
    Kind.HISTOGRAM,
    "Duration of a review, from the whole request to its answer.",
    ("path",),
)
CONNECTIONS: Final = Metric(
    "nri_resmgr_webhook_connections",
    Kind.GAUGE,
    "Connections of clients.",
)
CERTIFICATE_UNTIL: Final = Metric(
    "nri_resmgr_webhook_certificate_expiry_timestamp_seconds",
    Kind.GAUGE,
    "End of the life of the certificate in use; absent before the first one.",
)
CERTIFICATES: Final = Metric(
    "nri_resmgr_webhook_certificate_changes_total",
    Kind.COUNTER,
    "Certificates that were put in use.",
)
CERTIFICATE_BAD: Final = Metric(
    "nri_resmgr_webhook_certificate_bad",
    Kind.GAUGE,
    "1 if the files of the certificate cannot be used as they are, else 0.",
)

METRICS: Final = tuple(one for one in globals().values() if isinstance(one, Metric))
"""All of them, in this order."""

BAD: Final = "bad"
"""The result of what is no review."""


class ReviewCounters:
    """Counts reviews and their durations."""

    def __init__(self) -> None:
        self._reviews: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[tuple[str], Histogram] = {}

    def note(self, path: str, result: str, seconds: float) -> None:
        """Count a review."""
        self._reviews[path, result] += 1
        self._seconds.setdefault((path,), Histogram()).add(seconds)

    def series(self) -> Iterator[Series]:
        """Yield all counters."""
        yield Series(REVIEWS, self._reviews)
        yield Series(SECONDS, self._seconds)


def series_of_build() -> Series:
    """Return the version of the webhook."""
    return Series(BUILD, {(our_version(), platform.python_version()): 1})


def series_of_certificate(certificate: LiveCertificate) -> Iterator[Series]:
    """Yield the state of the certificate."""
    if certificate.validity is not None:
        yield single(CERTIFICATE_UNTIL, certificate.validity.until.timestamp())
    yield single(CERTIFICATES, certificate.changes)
    yield single(CERTIFICATE_BAD, int(bool(certificate.why_not)))
