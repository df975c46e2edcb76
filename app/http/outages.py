"""The log of outages of the database: each is logged once when it begins and once when it has ended."""

import logging
import time

_log = logging.getLogger(__name__)

QUIET_SECONDS = 2.0
"""An outage has ended when the database has answered for so long: single queries may fail while others do not."""


class OutageLog:
    """What is known of the present outage; `cause` is empty without one."""

    def __init__(self) -> None:
        self.cause = ""
        self._began_at = self._failed_at = self._returned_at = 0.0

    @property
    def recent_cause(self) -> str:
        """The cause of failures in the last moments, where the database answers others meanwhile."""
        recent = self._failed_at > max(self._returned_at, time.monotonic() - QUIET_SECONDS)
        return self.cause if recent else ""

    def note_return(self) -> None:
        """Note that the database can be reached again: earlier failures say nothing about it any more."""
        self._returned_at = time.monotonic()

    def note_failure(self, cause: str, detail: str = "") -> None:
        """Note that the database could not be reached; `detail` is for the log alone, which it may name hosts in."""
        self._failed_at = time.monotonic()
        if not self.cause:
            self._began_at = self._failed_at
            _log.error("%s%s", cause, f" ({detail})" if detail else "")
        self.cause = cause

    def note_answer(self) -> None:
        """Note that the database has answered."""
        now = time.monotonic()
        if self.cause and now - self._failed_at >= QUIET_SECONDS:
            lasted = max(1, round(self._failed_at - self._began_at))
            _log.warning("The database answers again, after %d s. The last failure was: %s", lasted, self.cause)
            self.cause = ""
