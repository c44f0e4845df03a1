"""The quality-of-service classes that Kubernetes sorts pods into."""

from __future__ import annotations

import enum


class QosClass(enum.StrEnum):
    """QoS class of a pod; the values are the words of the pod's status.

    Source:
        Kubernetes, "Pod Quality of Service Classes".
    """

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"
