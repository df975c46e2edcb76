"""Random bodies of POST /estimate: models by preset and by fields, loads, services, trainings, and GPUs."""

from random import Random
from typing import Any

Body = dict[str, Any]

GPUS = {
    "H100": (79.2, 3350.0, 989.0, 1979.0, "nvlink"),
    "H200": (139.8, 4800.0, 989.0, 1979.0, "nvlink"),
    "B200": (178.4, 8000.0, 2250.0, 4500.0, "nvlink"),
    "GB300": (276.0, 8000.0, 2500.0, 5000.0, "nvlink"),
    "A100": (79.15, 2039.0, 312.0, 312.0, "nvlink"),
    "MI300X": (191.5, 5300.0, 1307.0, 2614.0, "nvlink"),
    "H100 NVL": (93.1, 3938.0, 835.0, 1671.0, "pcie"),
    "L40S": (44.4, 864.0, 362.0, 733.0, "pcie"),
    "RTX PRO 6000": (94.97, 1597.0, 252.0, 503.0, "pcie"),
    "A10": (22.07, 600.0, 125.0, 125.0, "pcie"),
}
"""Usable GiB, GB/s, dense TFLOP/s in 16 and in 8 bits, and the usual link."""

MODELS = (
    "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-2-13b", "qwen2.5-72b", "qwen3-32b", "qwen3-235b-a22b",
    "mixtral-8x7b", "mixtral-8x22b", "deepseek-v3", "kimi-k2", "gpt-oss-120b", "gpt-oss-20b", "gemma-2-27b", "phi-4",
)  # fmt: skip
DTYPES = ("bf16", "fp16", "fp8", "int8", "int4", "awq_int4", "nvfp4")
TENSOR = (1, 1, 2, 4, 8)


def random_body(random: Random) -> Body:
    """Return a random request: half of them serve with a load, the others with a service level, or train."""
    kind = random.choice(("load", "load", "service", "training"))
    if kind == "training":
        return {**_model(random), "training": _training(random), "gpus": _training_gpus(random)}
    body = {**_model(random), "inference": _inference(random), "gpus": _gpus(random)}
    return _with_service(body, random) if kind == "service" else _with_load(body, random)


def _model(random: Random) -> Body:
    kind = random.choice(("preset", "preset", "dense", "experts", "params"))
    if kind == "preset":
        return {"model": random.choice(MODELS)}
    if kind == "params":
        return {"architecture": {"params": round(10 ** random.uniform(9, 12))}}
    heads = 8 * random.choice((2, 4, 5, 8, 12, 16))
    shape = {
        "layers": random.randint(8, 126),
        "hidden": 128 * heads,
        "heads": heads,
        "head_dim": 128,
        "kv_heads": random.choice((1, 2, 4, 8, heads)),
        "intermediate": 256 * random.randint(16, 160),
        "vocab": random.choice((32_000, 128_256, 152_064)),
        "tied_embeddings": random.random() < 0.3,
    }
    if kind == "experts":
        experts = random.choice((8, 16, 64, 128, 256))
        shape |= {
            "experts": experts,
            "experts_per_token": random.choice([k for k in (1, 2, 4, 8) if k < experts]),
            "moe_intermediate": 256 * random.randint(2, 32),
        }
    return {"architecture": shape}


def _inference(random: Random) -> Body:
    served: Body = {"tensor_parallel": random.choice(TENSOR)}
    options = {
        "dtype": (0.7, random.choice(DTYPES)),
        "kv_dtype": (0.2, "fp8"),
        "engine": (0.6, random.choice(("vllm", "sglang", "trtllm"))),
        "pipeline_parallel": (0.15, random.choice((2, 4))),
        "block_tokens": (0.2, 16),
        "utilization": (0.2, random.choice((0.8, 0.9, 0.95))),
        "speculative": (
            0.15,
            random.choice(
                (
                    {"accepted_tokens_per_step": random.choice((0.5, 1.2, 2.5)), "draft_params": 1_000_000_000},
                    {"accepted_tokens_per_step": 1.5, "draft_tokens": 4, "draft_weight_gib": 1.2},
                    {"accepted_tokens_per_step": 0.8},
                )
            ),
        ),
    }
    return served | {name: value for name, (share, value) in options.items() if random.random() < share}


def _gpus(random: Random) -> Body:
    usable, bandwidth, peak, narrow, link = GPUS[random.choice(list(GPUS))]
    gpus: Body = {
        "usable_gib": usable,
        "bandwidth_gb_per_s": bandwidth,
        "peak_tflops": random.choice((peak, peak, narrow)),
        "link": link,
    }
    if random.random() < 0.2:
        gpus |= {"bandwidth_gb_per_s": round(bandwidth * random.uniform(0.5, 2), 1)}
    if random.random() < 0.2:
        gpus |= {"peak_tflops": round(peak * random.uniform(0.5, 3), 1)}
    if random.random() < 0.2:
        gpus |= {"link_gb_per_s": random.choice((16, 64, 450, 1800))}
    if random.random() < 0.2:
        gpus |= {"network": random.choice(("infiniband", "ethernet"))}
    return gpus


def _with_load(body: Body, random: Random) -> Body:
    """Add a load, and GPUs for one to four copies; of a model with experts sometimes groups."""
    served = body["inference"] | {"concurrency": random.choice((1, 2, 5, 8, 17, 32, 64, 200, 500, 1500))}
    if random.random() < 0.5:
        served |= {"context_tokens": random.choice((256, 1024, 4000, 8192))}
    else:
        served |= {"prompt_tokens": random.choice((1, 128, 1000, 4096)), "output_tokens": random.choice((1, 64, 1000))}
    stage = served["tensor_parallel"]
    if _has_experts(body) and random.random() < 0.4:
        served |= {"data_parallel_attention": random.choice((2, 4, 8))}
        stage *= served["data_parallel_attention"]
    elif _has_experts(body) and random.random() < 0.3 and stage > 1:
        served |= {"expert_parallel": stage}
    copies = random.choice((1, 1, 2, 4))
    return body | {
        "inference": served,
        "gpus": body["gpus"] | {"count": copies * stage * served.get("pipeline_parallel", 1)},
    }


def _has_experts(body: Body) -> bool:
    names = ("mixtral", "deepseek", "kimi", "gpt-oss", "a22b")
    shape = body.get("architecture", {})
    return shape.get("experts", 0) >= max(TENSOR) or any(name in body.get("model", "") for name in names)


def _with_service(body: Body, random: Random) -> Body:
    load = random.choice(
        (
            {"users": random.choice((1, 10, 100, 3000))},
            {"requests_per_second": random.choice((0.1, 2.0, 30.0))},
            {"requests_per_day": random.choice((1000, 500_000))},
        )
    )
    level: Body = {
        "input_tokens": random.choice((64, 500, 2000, 6000)),
        "output_tokens": random.choice((16, 300, 1000)),
        **load,
    }
    options = {
        "ttft_ms": random.choice((200, 500, 2000, 10_000)),
        "tpot_ms": random.choice((10, 25, 50, 150)),
        "peak_to_mean": random.choice((1.5, 3)),
        "prefix_cache_hit": random.choice((0.3, 0.8)),
        "disaggregated": True,
    }
    return body | {"serving": level | {name: value for name, value in options.items() if random.random() < 0.5}}


def _training(random: Random) -> Body:
    job: Body = {
        "method": random.choice(("full", "full", "full", "lora", "qlora")),
        "sequence_tokens": random.choice((512, 2048, 4096, 8192, 32_768)),
        "tokens": 10 ** random.randint(6, 13),
    }
    options = {
        "micro_batch": random.choice((1, 2, 4)),
        "global_batch": 1024,
        "recompute": random.choice(("none", "selective", "full")),
        "zero_stage": random.choice((0, 1, 2, 3)),
        "cross_entropy": random.choice(("full", "chunked", "fused")),
        "precision": random.choice(("bf16", "fp8", "fp8_block", "mxfp8", "nvfp4")),
    }
    return job | {name: value for name, value in options.items() if random.random() < 0.5}


def _training_gpus(random: Random) -> Body:
    usable, bandwidth, peak, narrow, _ = GPUS[random.choice(list(GPUS))]
    gpus: Body = {"count": random.choice((1, 8, 16, 64, 512)), "usable_gib": usable}
    gpus["peak_tflops"] = random.choice((peak, narrow, round(peak * random.uniform(0.3, 4), 1)))
    return gpus | ({"bandwidth_gb_per_s": bandwidth} if random.random() < 0.5 else {})
