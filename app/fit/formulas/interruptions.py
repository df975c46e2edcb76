"""Training on spot VMs: how often to write checkpoints, and what evictions add to time and cost."""

from dataclasses import dataclass
from math import exp, inf, sqrt

HOURS_PER_MONTH = 730
MAX_EXPONENT = 50.0
"""Beyond e^50 times the time a job does not end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotTerms:
    """How VMs are evicted, started again, and where checkpoints go.

    `evictions_per_hour` is the probability that one VM is evicted within an hour, and one evicted VM stops the job.
    `restart_hours` pass until VMs are back and the program has started. Checkpoints are written and read at
    `bytes_per_s` in all; `checkpoints` of them are kept, at `usd_per_gb_month` (10^9 bytes). `interval_hours` is the
    time between checkpoints; None for the best.
    """

    evictions_per_hour: float
    restart_hours: float
    bytes_per_s: float
    usd_per_gb_month: float
    checkpoints: int
    interval_hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """What evictions do to a job: extra time as a share, infinite where it never ends; evictions of any VM an hour.

    `storage_usd_per_hour` is for the checkpoints that are kept, in each hour until the job ends.
    """

    overhead: float
    evictions_per_hour: float
    interval_hours: float
    checkpoint_hours: float
    checkpoint_bytes: float
    storage_usd_per_hour: float

    def cost(self, usd_per_hour: float, hours: float) -> float:
        """Return the USD of a job of `hours` without interruptions."""
        return (usd_per_hour + self.storage_usd_per_hour) * hours * (1 + self.overhead)


def best_interval(write_hours: float, hours_between: float) -> float:
    """Return the time of work between two checkpoints with the least expected time, hours.

    sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 18M) - d for d < 2M, else M; d to write a checkpoint, M between failures.
    Sources: Young, CACM 17 (1974), 530; Daly, FGCS 22 (2006), 303, equation 37.
    """
    if write_hours >= 2 * hours_between:
        return hours_between
    ratio = sqrt(write_hours / (2 * hours_between))
    return sqrt(2 * write_hours * hours_between) * (1 + ratio / 3 + ratio**2 / 9) - write_hours


def time_factor(interval: float, write: float, restart: float, between: float) -> float:
    """Return expected time / time of work: M e^(R/M) (e^((t + d)/M) - 1) / t, with all times in one unit.

    t of work between checkpoints, d to write one, R to restart, M between failures at exponential intervals, which may
    also strike while a checkpoint is written or the job restarts. Source: Daly, FGCS 22 (2006), 303, equation 20.
    """
    if (interval + write + restart) / between > MAX_EXPONENT:
        return inf
    return between * exp(restart / between) * (exp((interval + write) / between) - 1) / interval


def interruptions(terms: SpotTerms, checkpoint_bytes: float, vms: int, job_hours: float | None) -> Interruptions:
    """Return what evictions of any of n VMs do to a job; the interval is the best one, or given, at most the job."""
    write = checkpoint_bytes / terms.bytes_per_s / 3600
    evictions = terms.evictions_per_hour * vms
    between = 1 / evictions if evictions else inf
    interval = terms.interval_hours
    if interval is None:
        interval = best_interval(write, between) if evictions and write else inf
    interval = min(interval, job_hours or inf)
    if not evictions:
        overhead = write / interval
    elif interval == inf:  # without checkpoints to write, work is saved all the time
        overhead = 0.0
    else:
        # What was written is read again, as fast.
        overhead = time_factor(interval, write, terms.restart_hours + write, between) - 1
    gigabytes = terms.checkpoints * checkpoint_bytes / 1e9
    return Interruptions(
        overhead=overhead,
        evictions_per_hour=evictions,
        interval_hours=interval,
        checkpoint_hours=write,
        checkpoint_bytes=checkpoint_bytes,
        storage_usd_per_hour=gigabytes * terms.usd_per_gb_month / HOURS_PER_MONTH,
    )
