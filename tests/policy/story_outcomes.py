"""What came of a step of a story, written as the step would write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nri_resmgr.policy.decision import Decision, Resources
from nri_resmgr.policy.events import ColdStartEnded, Pin
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import MemoryKind

WANTED: Final = (
    "gets",
    "rule",
    "rules",
    "pool",
    "decided",
    "detail",
    "source",
    "tried",
    "shares",
    "scheduling",
    "resources",
    "timers",
    "updates",
    "refused",
    "warns",
)


def expectation_of(step: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a step expects; no update is expected where none is written."""
    found = {key: step[key] for key in WANTED if key in step}
    return found if "refused" in found else {"updates": {}} | found


def refusal_of(refusal: Exception, step: Mapping[str, Any]) -> dict[str, Any]:
    """Write a refusal; of one that the step quotes in part, that part."""
    return {"refused": quoted(str(refusal), step.get("refused"))}


def outcome_of(
    step: Mapping[str, Any],
    decision: Decision[Any],
    policy: ViewedPolicy[Any],
    warnings: list[str],
) -> dict[str, Any]:
    """Write a decision; what the step does not ask for is left out."""
    found: dict[str, Any] = {
        "updates": {one.container: news_of(one.pin) for one in decision.updates}
    }
    if "create" in step or "update" in step:
        found["gets"] = text_of(decision.pin)
    for key in step.keys() & set(_OF_REASON):
        # After that of a pod come those of its places.
        reasons = decision.reasons[:1] if "expects" in step else decision.reasons
        (reason,) = reasons
        found[key] = quoted(str(getattr(reason, key)), step[key])
    for key in step.keys() & _OF_DECISION.keys():
        found[key] = _OF_DECISION[key](decision)
    if "resources" in step:
        found["resources"] = {
            name: _resources(policy.resources_of(decision.state, name))
            for name in step["resources"]
        }
    if "warns" in step:
        found["warns"] = quoted("; ".join(warnings), step["warns"])
    return found


_OF_REASON: Final = ("rule", "pool", "decided", "detail", "source")
_OF_DECISION: Final[dict[str, Callable[[Decision[Any]], Any]]] = {
    "rules": lambda made: {one.container: one.rule.value for one in made.reasons},
    "tried": lambda made: [pool for one in made.reasons for pool, _ in one.tried],
    "shares": lambda made: made.pin.shares,
    "scheduling": lambda made: made.scheduling.name if made.scheduling else None,
    "timers": lambda made: {
        timer.event.id: timer.seconds
        for timer in made.timers
        if isinstance(timer.event, ColdStartEnded)
    },
}


def quoted(text: str, wanted: object) -> str:
    """Return what is wanted if *text* has all of it, in order; "..." leaves out."""
    place = 0
    if isinstance(wanted, str) and "..." in wanted:
        for part in wanted.split("..."):
            found = text.find(part.strip(), place)
            if found < 0:
                return text
            place = found + len(part.strip())
        return wanted
    return text


def text_of(pin: Pin) -> str:
    """Write CPUs and memory nodes."""
    return f"{pin.cpus} on {pin.mems}" if pin.mems else str(pin.cpus)


def news_of(pin: Pin) -> str:
    """Write what is expected of a container, with its weight if there is one."""
    return f"{text_of(pin)} with {pin.shares}" if pin.shares else text_of(pin)


def _resources(found: Resources | None) -> str:
    if found is None:
        return "unpublished"
    rows = {
        "shared": found.shared,
        "isolated": found.isolated,
        "exclusive": found.exclusive,
        **{kind.value: found.mems.get(kind) for kind in MemoryKind},
    }
    return ", ".join(f"{name} {what}" for name, what in rows.items() if what)
