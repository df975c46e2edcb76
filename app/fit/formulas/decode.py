"""Generating tokens: bounds that memory bandwidth and arithmetic set, and what of them is reached."""

from dataclasses import dataclass

from app.fit.formulas.quantities import Range

REACHED = Range(low=0.60, mid=0.75, high=0.85)
"""Share of the bound that is reached: kipply measured 22.0 ms where 17.07 ms is ideal (13B on an A100), 78 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one GPU does in one step of a batch: bytes of weights and of KV cache that it reads, and FLOPs."""

    weights_bytes: float
    kv_bytes: float
    flops: float = 0.0


def step_seconds(step: Step, bandwidth_bytes_per_s: float, peak_flops: float | None = None) -> float:
    """Say how long one step takes at least, s: max(W_read / BW, FLOPs / peak) + B KV / BW.

    A bound: every weight and every kept token is read once a step. W_read, B KV and FLOPs are of one GPU of a
    tensor-parallel group; without a peak arithmetic sets no bound. BW bytes a second (decimal), peak dense FLOP/s.
    Source: Pope et al., arXiv 2211.05102, section 2; kipply, Transformer Inference Arithmetic.
    """
    reading = step.weights_bytes / bandwidth_bytes_per_s
    counting = step.flops / peak_flops if peak_flops else 0.0
    return max(reading, counting) + step.kv_bytes / bandwidth_bytes_per_s


def expected_step_seconds(least_s: float) -> Range:
    """Say how long a step takes in practice, s: the bound divided by 0.85, 0.75 and 0.60; an estimate."""
    return REACHED.dividing(least_s)


def experts_read(experts: int, per_token: int, sequences: float) -> float:
    """Say which share of the experts' weights a step of B sequences reads: 1 - (1 - e / E)^B.

    An estimate: routing is taken as uniform and independent. E experts, e of them per token. Derived here.
    """
    untouched: float = (1 - per_token / experts) ** sequences
    return 1 - untouched


def decode_flops(active_params: float, sequences: float) -> float:
    """Say what one step of B sequences computes: 2 N_act B FLOPs; a bound from below, attention not counted."""
    return 2 * active_params * sequences
