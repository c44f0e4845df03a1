"""Whose word counts for the class of a container, and what is said of a refusal."""

from __future__ import annotations

import pytest

from nri_resmgr.classes.choice import (
    ClassChoice,
    ClassDenied,
    ClassMissing,
    ClassRequest,
    Origin,
    UnknownClass,
    choose,
)
from nri_resmgr.values import QosClass

REQUEST = ClassRequest("gold", "rdtclass.resource-policy.nri.io")


@pytest.mark.parametrize(
    ("asked", "given", "qos", "expected"),
    [
        pytest.param(None, "", None, None, id="nothing is set"),
        pytest.param(
            REQUEST,
            "slow",
            QosClass.BURSTABLE,
            ClassChoice("gold", Origin.ANNOTATION),
            id="an annotation goes first",
        ),
        pytest.param(
            None,
            "slow",
            QosClass.BURSTABLE,
            ClassChoice("slow", Origin.TYPE),
            id="then the balloon type",
        ),
        pytest.param(
            None,
            "",
            QosClass.BEST_EFFORT,
            ClassChoice("BestEffort", Origin.QOS),
            id="then the QoS class",
        ),
    ],
)
def test_the_choice_of_highest_precedence_wins(
    asked: ClassRequest | None,
    given: str,
    qos: QosClass | None,
    expected: ClassChoice | None,
) -> None:
    assert choose(asked, given, qos) == expected


ABOUT = ("default/web/web", "RDT", "gold", "KEY")
ASKS = "default/web/web asks for RDT class 'gold' by KEY"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        pytest.param(
            UnknownClass(*ABOUT, ("a", "b")),
            f"{ASKS}; known: a, b; name one of these, or add the class to the "
            "configuration",
            id="unknown",
        ),
        pytest.param(
            UnknownClass(*ABOUT, ()),
            f"{ASKS}; none is defined; add the class to the configuration",
            id="none is known",
        ),
        pytest.param(
            ClassDenied(*ABOUT, "kubernetes.denyPodAnnotation"),
            f"{ASKS}, which kubernetes.denyPodAnnotation of the class forbids; name "
            "another class",
            id="denied",
        ),
        pytest.param(
            ClassMissing(*ABOUT, "its group is gone"),
            f"{ASKS}, which this node does not have: its group is gone",
            id="missing",
        ),
    ],
)
def test_sentences_name_class_and_annotation(error: Exception, sentence: str) -> None:
    assert str(error) == sentence
