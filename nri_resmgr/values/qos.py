"""The quality-of-service classes of Kubernetes pods."""

from __future__ import annotations

import enum


class QosClass(enum.StrEnum):
    """QoS class of a pod; the values are those of the pod's status.

    Source:
        Kubernetes, "Pod Quality of Service Classes".
    """

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"
