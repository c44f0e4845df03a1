"""The environment and the command line of containers of static pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from nri_proto import NriLevel
from nri_resmgr.app.classes.setter import ClassSetter, NewContainer
from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.app.requests.static_pools import (
    NO_AFFINITY,
    POOL,
    SOCKET,
    isolated_command,
)
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.pool_request import PoolRequest
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.values import HostError

# Older runtimes drop the field, and would start a `cmk` that no image needs to have.
ARGS_LEVEL: Final = NriLevel(0, 10)


@dataclass(eq=False)
class CommandUnchangeable(HostError):
    """The runtime cannot take ``cmk isolate`` out of a command line."""

    title: str
    runtime: str
    level: NriLevel

    def __str__(self) -> str:
        return (
            f"{self.title}: its command line begins with `cmk isolate`, and NRI "
            f"{self.level} of {self.runtime} cannot change command lines, {ARGS_LEVEL} "
            f"could; to help, ask for the pool by the variable {POOL} instead"
        )


class EnvironmentSetter(ClassSetter):
    """Adds the variables of the policy, and takes ``cmk isolate`` out.

    If the NRI release of the runtime is unknown, the command line is sent.
    """

    def __init__(
        self, runtime: RuntimeInfo, policy: ViewedPolicy[KnowsContainers]
    ) -> None:
        self._runtime = runtime
        self._policy = policy

    def check(self, new: NewContainer) -> None:
        """Check that the runtime can change the command line, if it has to.

        Raises:
            CommandUnchangeable: It cannot.
        """
        request, level = new.spec.pool_request, self._runtime.level
        if request.by_command and level and level < ARGS_LEVEL:
            raise CommandUnchangeable(new.spec.title, str(self._runtime), level)

    def add(
        self,
        adjustment: ContainerAdjustment,
        new: NewContainer,
        decision: PolicyDecision,
    ) -> ContainerAdjustment:
        """Add variables and the command line."""
        result, spec = adjustment, new.spec
        variables = dict(self._policy.environment_of(decision.state, spec.id))
        if (request := spec.pool_request).by_command:
            # What the command line said is found there after a restart.
            variables |= _variables(request)
            result = _with_command(result, new.container.args)
        for name, value in variables.items():
            result = result.set_env(name, value)
        return result


def _with_command(
    adjustment: ContainerAdjustment, args: tuple[str, ...]
) -> ContainerAdjustment:
    """Take ``cmk isolate`` out of a command line, which may begin with `mpolset`."""
    command = isolated_command(args)
    # Runtimes start no empty command; `cmk` itself then reports that there is none.
    if command is None or not command.args or not command.args[0]:
        return adjustment
    # Replaced, because a plugin before this one may have set them: its words stay.
    if not adjustment.args:
        return adjustment.replace_args(command.args)
    before = adjustment.args[: -len(args)]
    return replace(adjustment, args=(*before, *command.args))


def _variables(request: PoolRequest) -> Iterator[tuple[str, str]]:
    yield POOL, request.pool
    if request.socket:
        yield SOCKET, request.socket
    if not request.is_pinned:
        yield NO_AFFINITY, "1"
