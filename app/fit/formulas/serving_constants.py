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
    dense_read=1.189,
    expert_read=1,
    dequantize=0.4352,
    kv_read=1,
    compute=1.5,
    layer_us=42.2,
    latent_us=23.12,
    expert_us=4.803,
    doubling_us=6.834,
    collective=2.015,
    sequence_us=13.72,
    prefill_dense=1.222,
    prefill_experts=5.168,
    sglang_layer_us=691.4,
    vllm=0.07598,
    amd=0.5573,
    amd_latent=0.9013,
)
FIRST_TOKEN = FirstTokenConstants(
    base_ms=18.86,
    steps=1.537,
    trtllm_ms=30.77,
    trtllm_steps=4.361,
    doubling_ms=0.0799,
    waiting=0.06224,
    sglang_waiting=0.1466,
)
STEP_SPREAD: Mapping[str, Spread] = {
    "dense": Spread(0.851, 1.17),
    "experts": Spread(0.759, 1.3),
    "unseen": Spread(0.775, 1.72),
    "amd": Spread(0.764, 1.27),
}
FIRST_TOKEN_SPREAD: Mapping[str, Spread] = {"steady": Spread(0.629, 2.05), "burst": Spread(0.539, 1.72)}
MEASURED_MODELS = frozenset(
    [
        (32, 4096, 0, "sglang"),
        (32, 4096, 0, "trtllm"),
        (36, 2880, 128, "trtllm"),
        (36, 2880, 128, "vllm"),
        (60, 4096, 512, "sglang"),
        (61, 7168, 256, "sglang"),
        (61, 7168, 256, "trtllm"),
        (61, 7168, 384, "vllm"),
        (62, 3072, 256, "vllm"),
        (80, 8192, 0, "trtllm"),
        (80, 8192, 0, "vllm"),
        (94, 4096, 128, "trtllm"),
        (94, 4096, 128, "vllm"),
    ]
)
# End of what is fitted.
