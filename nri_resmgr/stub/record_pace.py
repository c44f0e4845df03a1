"""The pace of calls that carry records: the runtime's own requests go first."""

from __future__ import annotations

from typing import Final

import attrs

# Requests come in bursts: a pod's containers are created within a second. A call in
# between delays a start; a second later it delays none.
RECORD_QUIET: Final = 1.0  # seconds without a request

# On a node that never rests, the runtime's record would never follow.
RECORD_PATIENCE: Final = 10.0  # seconds

# A call holds the runtime's one lock, for which a request that comes meanwhile waits.
RECORD_CALL: Final = 0.05  # seconds

# Of containerd with runc, which writes a container's state to disk for each update.
SECONDS_PER_UPDATE: Final = 0.012


@attrs.define(eq=False)
class RecordPace:
    """Sizes and times of the calls that carry records; has no clock of its own.

    Attributes:
        quiet: Seconds without a request after which a call is welcome.
        patience: Seconds after which the oldest record no longer waits for that.
        call: Seconds that a call should take at most.
        per_update: Seconds that an update is expected to take, from earlier calls.
    """

    quiet: float = RECORD_QUIET
    patience: float = RECORD_PATIENCE
    call: float = RECORD_CALL
    per_update: float = SECONDS_PER_UPDATE
    _rests_until: float = attrs.field(default=float("-inf"), init=False)

    @property
    def most(self) -> int:
        """Number of records in the next call, at least one."""
        return max(1, int(self.call / self.per_update))

    def wait(self, now: float, quiet_seconds: float, oldest_seconds: float) -> float:
        """Return the seconds until a call is welcome; 0 if it is now.

        Args:
            now: The time.
            quiet_seconds: Seconds since the last request; 0 while one is handled.
            oldest_seconds: Age of the oldest record.
        """
        quiet = self.quiet - quiet_seconds
        # While a request is handled, a call would wait for its end, and what becomes
        # urgent by then would wait for the call.
        if quiet_seconds:
            quiet = min(quiet, self.patience - oldest_seconds)
        return max(0.0, quiet, self._rests_until - now)

    def called(self, now: float, seconds: float, records: int = 0) -> None:
        """Rest after a call as long as it took, and learn from it.

        Args:
            now: The time at its end.
            seconds: The time that it took.
            records: Number of records that the runtime took by it.
        """
        self.rest(now, seconds)
        if records:
            # The mean with earlier calls: one that waited for a lock of the runtime
            # should not make all later calls small.
            self.per_update = (self.per_update + seconds / records) / 2

    def rest(self, now: float, seconds: float) -> None:
        """Have no call welcome for a time."""
        self._rests_until = max(self._rests_until, now + seconds)
