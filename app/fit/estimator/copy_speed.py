"""Expected times of one copy of a served model as functions of its load: what sizing by a service level asks for."""

from dataclasses import dataclass, field
from typing import NamedTuple

from app.fit.estimator.disaggregation import is_disaggregated, prompt_busy_s, transfer_s
from app.fit.estimator.serving import ServingSetup
from app.fit.estimator.serving_speed import CopyWork, copy_work, kv_bytes_read, least_prompt, least_step, prompt_work
from app.fit.estimator.speed_model import Lengths, request_lengths, speed_model
from app.fit.formulas.memory import KvCache
from app.fit.formulas.quantities import Range
from app.fit.formulas.serving_constants import FIRST_TOKEN, STEP
from app.fit.formulas.serving_speed import engine_factor, first_token_time, prompt_time, step_time


class LoadTimes(NamedTuple):
    """Times of a copy under a load, s: of a step, to the first token, of prompts in a step, of a whole request."""

    step: float
    first_token: float
    prompts: float
    request: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySpeed:
    """Expected times of one copy under any load, the middles of what `serving_speed` gives: for sizing by a load.

    `setup` must have the bandwidth and the peak of its GPUs, and the lengths of a request. `transfer_s` is None where
    copies read the prompts of their own requests: else other copies read them, and this is what moving a cache takes.
    """

    setup: ServingSetup
    weights: Range
    work: CopyWork
    lengths: Lengths
    least_prompt_s: float
    transfer_s: float | None = None
    _times: dict[int, LoadTimes] = field(default_factory=dict, compare=False)

    def times(self, sequences: int) -> LoadTimes:
        """Return the times with `sequences` on the copy; both grow with them. They are computed once.

        Where other copies read the prompts, no prompt waits for another.
        """
        known = self._times.get(sequences)
        if known is None:
            known = self._times[sequences] = self._find_times(sequences)
        return known

    def _find_times(self, sequences: int) -> LoadTimes:
        setup, tokens = self.setup, self.work.yielded
        work = self.work.under(sequences)
        least = least_step(setup, self.work.model, self.weights, work.kv_read_s, sequences)
        step = max(least, step_time(work, STEP) / tokens)
        alone = prompt_work(setup, work, self.lengths, sequences)
        first = max(self.least_prompt_s, first_token_time(alone, step * tokens, STEP, FIRST_TOKEN))
        first += self.transfer_s or 0.0
        prompts = work.prompts * prompt_time(work, STEP) * engine_factor(work, STEP) / tokens
        return LoadTimes(step, first, prompts, first + self.lengths.output * step)

    def prompt_busy_s(self) -> float:
        """Return how long a prompt occupies a copy that reads nothing but prompts, s."""
        return prompt_busy_s(prompt_work(self.setup, self.work.under(1), self.lengths, 1))


def copy_speed(setup: ServingSetup, weights: Range, cache: KvCache | None) -> CopySpeed:
    """Return the times of a copy as a function of its load; raises ValueError where a request has no lengths."""
    lengths = request_lengths(setup.workload)
    if lengths is None:
        raise ValueError("the lengths of a request are unknown")
    model = speed_model(setup, weights)
    return CopySpeed(
        setup=setup,
        weights=weights,
        work=copy_work(setup, model, lengths, kv_bytes_read(setup, cache, lengths)),
        lengths=lengths,
        least_prompt_s=least_prompt(setup, model, lengths),
        transfer_s=transfer_s(setup, cache, lengths) if is_disaggregated(setup) else None,
    )
