"""The constants of serving speed, their ranges, and what they were measured on."""

from collections.abc import Mapping
from typing import NamedTuple

from app.fit.formulas.serving_speed import FirstTokenConstants, StepConstants


class Spread(NamedTuple):
    """The measured time over the expected one: that which a tenth of the runs is below, and above."""

    low: float
    high: float


# Fitted, by `python -m benchmarks.calibrate --write`.
STEP = StepConstants(
    dense_read=1.164,
    expert_read=1,
    dequantize=0.4918,
    kv_read=1,
    compute=1.901,
    layer_us=40.39,
    latent_us=18.25,
    expert_us=4.361,
    doubling_us=7.008,
    collective=1.877,
    sequence_us=17.19,
    prefill_dense=1.192,
    prefill_experts=4.94,
    sglang=0.1382,
    vllm=0.09329,
)
FIRST_TOKEN = FirstTokenConstants(
    base_ms=33.62, layer_ms=0.1444, latent_ms=0.5355, waiting=0.06682, steps=5.328, sglang=1.552, vllm=-0.2257
)
STEP_SPREAD: Mapping[str, Spread] = {"dense": Spread(0.863, 1.18), "experts": Spread(0.75, 1.32)}
FIRST_TOKEN_SPREAD: Mapping[str, Spread] = {"dense": Spread(0.584, 2.16), "experts": Spread(0.487, 2.19)}
# End of what is fitted.
