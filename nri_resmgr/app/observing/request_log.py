"""One line of debug for each answered request of the runtime."""

from __future__ import annotations

from nri_proto import Code
from nri_resmgr.app.observers.after_reply import after_reply
from nri_resmgr.log import Logger
from nri_resmgr.stub.observer import Observer

log = Logger(__name__)


class RequestLog(Observer):
    """Logs requests while debug of this component is on."""

    def answered(self, method: str, seconds: float, code: int) -> None:
        """Log one request, once its answer is out."""
        if log.is_debugged:
            after_reply(_log, method, seconds, code)


def _log(method: str, seconds: float, code: int) -> None:
    try:
        status = Code(code).name.lower().replace("_", "-")
    except ValueError:
        status = str(code)
    milliseconds = round(seconds * 1000, 3)
    log.debug("request.answered", method=method, status=status, took_ms=milliseconds)
