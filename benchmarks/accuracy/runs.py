"""The measured serving runs of serving.csv.gz, and the body of POST /estimate that asks for each of them."""

import csv
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from app.fit.estimator.serving import ServingSetup
from app.fit.formulas.memory import Parallelism, build_kv_cache, kv_bytes_per_sequence
from benchmarks.accuracy.estimates import setup_of
from benchmarks.accuracy.make_serving import TABLE

BANDWIDTH = {"h100_sxm": 3350, "h200_sxm": 4800, "b200_sxm": 8000, "gb200": 8000, "gb300": 8000}
"""Memory bandwidth of a GPU, GB/s: the vendor's pages."""
PEAK_16_BITS = {"h100_sxm": 989, "h200_sxm": 989, "b200_sxm": 2250, "gb200": 2500, "gb300": 2500}
"""Dense peak in 16 bits, TFLOP/s: the vendor's pages. In 8 bits it is twice that, in 4 bits on Blackwell four times."""
HOPPER = frozenset({"h100_sxm", "h200_sxm"})

MODELS: Mapping[str, Mapping[str, Any]] = {
    "deepseek-ai/DeepSeek-R1": {"model": "deepseek-r1"},
    "nvidia/DeepSeek-R1-NVFP4": {"model": "deepseek-r1"},
    "deepseek-ai/DeepSeek-V3": {"model": "deepseek-v3"},
    "nvidia/DeepSeek-V3.1-NVFP4": {"model": "deepseek-v3"},
    "meta-llama/Llama-3.1-70B": {"model": "llama-3.1-70b"},
    "meta-llama/Llama-3.1-8B-Instruct": {"model": "llama-3.1-8b"},
    "openai/gpt-oss-120b": {"model": "gpt-oss-120b"},
    "Qwen/Qwen3-235B-A22B-FP8": {"model": "qwen3-235b-a22b"},
    "nvidia/Qwen3-32B-NVFP4": {"model": "qwen3-32b"},
    "moonshotai/Kimi-K2.5": {"model": "kimi-k2.5"},
    "MiniMaxAI/MiniMax-M2.5": {
        "architecture": {
            "layers": 62, "hidden": 3072, "heads": 48, "kv_heads": 8, "head_dim": 128, "vocab": 200_064,
            "experts": 256, "experts_per_token": 8, "moe_intermediate": 1536, "qk_norm": "all_heads",
        }
    },
    "Qwen/Qwen3.5-397B-A17B": {"model": "qwen3.5-397b-a17b"},
}  # fmt: skip
"""How a request names each model: as a preset, or by the figures of its config.json where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRun:
    """One measured run on GPUs that all serve one replica, prefill and decoding on the same GPUs."""

    engine: str
    model: str
    gpu: str
    dtype: str
    input_tokens: int
    output_tokens: int
    batch: int
    tensor_parallel: int
    expert_parallel: int
    data_parallel: int = 1
    ttft_s: float
    tpot_s: float

    @property
    def peak_tflops(self) -> float:
        """Dense peak of a GPU in the type that it computes in: Hopper has none of 4 bits and computes in 16."""
        bits = {"fp8": 2, "nvfp4": 4, "mxfp4": 4}.get(self.dtype, 1)
        return PEAK_16_BITS[self.gpu] * (1 if bits == 4 and self.gpu in HOPPER else bits)

    def body(self) -> dict[str, Any]:
        """Return the body of POST /estimate for this run."""
        return {
            **MODELS[self.model],
            "inference": {
                "dtype": self.dtype,
                "prompt_tokens": self.input_tokens,
                "output_tokens": self.output_tokens,
                "concurrency": self.batch,
                "tensor_parallel": self.tensor_parallel,
                "engine": self.engine,
                "arrivals": "burst",
                "allow_longer_context": True,
            }
            | self._data_parallel(),
            "gpus": {
                "count": self.tensor_parallel * self.data_parallel,
                "bandwidth_gb_per_s": BANDWIDTH[self.gpu],
                "peak_tflops": self.peak_tflops,
                "link": "nvlink",
            },
        }

    def _data_parallel(self) -> dict[str, Any]:
        """Return the fields of data-parallel attention, if there is some."""
        if self.data_parallel == 1:
            return {}
        return {"data_parallel_attention": self.data_parallel, "expert_parallel": self.expert_parallel}


def _dtype(row: Mapping[str, str]) -> str:
    if row["model"].startswith("openai/gpt-oss"):
        return "mxfp4"
    return {"nvfp4": "nvfp4", "int4_wo": "int4", "": "bf16"}.get(row["matrix_type"], "fp8")


def read_rows() -> Iterator[dict[str, str]]:
    """Yield the rows of the table."""
    yield from csv.DictReader(gzip.decompress(TABLE.read_bytes()).decode().splitlines())


MAX_TTFT_S = 15.0
"""A first token that takes longer waited in a queue: the requests did not fit at once, and `batch` is too high."""
MEMORY_GB = {"h100_sxm": 80, "h200_sxm": 141, "b200_sxm": 180, "gb200": 186, "gb300": 277}
"""Memory of a GPU, 10^9 bytes: the vendor's pages."""


@lru_cache(maxsize=1)
def serving_runs() -> tuple[tuple[ServingRun, ServingSetup], ...]:
    """Return the runs that did not queue, without disaggregation and without data parallelism of the attention.

    Each is with its setup. A run is left out where the weights and half of the cache are more than the GPUs hold: its
    parallelism is not what the table says.
    """
    found = []
    for row in read_rows():
        if row["mode"] != "agg" or int(row["attention_data_parallel"] or 1) > 1:
            continue
        run = _run(row)
        if run.ttft_s > MAX_TTFT_S or run.tensor_parallel > 8:
            continue
        setup = setup_of(run.body())
        if _held_bytes(run, setup) < MEMORY_GB[run.gpu] * 1e9:
            found.append((run, setup))
    return tuple(found)


def _held_bytes(run: ServingRun, setup: ServingSetup) -> float:
    """Return the bytes of the weights and of half of the cache on each GPU."""
    parallelism, cache = Parallelism(tensor=run.tensor_parallel), build_kv_cache(setup.model.shape)
    each = kv_bytes_per_sequence(cache, run.input_tokens + run.output_tokens // 2, parallelism)
    weights = setup.weights.bytes.mid if setup.weights is not None else 0.0
    return weights / run.tensor_parallel + run.batch * each / 2


def _run(row: Mapping[str, str]) -> ServingRun:
    return ServingRun(
        engine=row["engine"],
        model=row["model"],
        gpu=row["gpu"],
        dtype=_dtype(row),
        input_tokens=int(row["input_tokens"]),
        output_tokens=int(row["output_tokens"]),
        batch=int(row["batch"]),
        tensor_parallel=int(row["tensor_parallel"]),
        expert_parallel=int(row["expert_parallel"]),
        ttft_s=float(row["ttft_ms"]) / 1e3,
        tpot_s=float(row["tpot_ms"]) / 1e3,
    )


def disaggregated_runs() -> tuple[ServingRun, ...]:
    """Return the replicas that only generate, of the runs with disaggregation, each once.

    Those whose requests are known, without data-parallel attention. The time to the first token is left out of use: it
    is mostly that of waiting for the replicas that read prompts.
    """
    found = {}
    for row in read_rows():
        groups, tensor = row["decode_attention_data_parallel"], int(row["decode_tensor_parallel"] or 0)
        if row["mode"] != "disagg" or not row["decode_batch"] or groups != "1" or not 0 < tensor <= GPUS_OF_A_SERVER:
            continue
        known = {"batch": row["decode_batch"], "tensor_parallel": row["decode_tensor_parallel"], "expert_parallel": "1"}
        run = _run(row | known)
        found[(run.gpu, run.engine, run.dtype, run.ttft_s, run.tpot_s)] = run
    return tuple(found.values())


GPUS_OF_A_SERVER = 8
MAX_BATCH = 1024
"""More requests of a run than this are a mistake of the table."""


@lru_cache(maxsize=1)
def data_parallel_runs() -> tuple[ServingRun, ...]:
    """Return the runs with data-parallel attention of one GPU each that did not queue, each once.

    The table counts degrees of parallelism twice in many of them: 64 groups are 8 GPUs whose experts are both split
    over 8 and distributed over 8, as their names say, and `batch` is then of an eighth of a group. All requests are
    `batch` x groups as the table has them. Runs of vLLM are left out: what of their attention is data parallel is open.
    """
    found = {}
    for row in read_rows():
        groups, batch = int(row["attention_data_parallel"] or 1), int(row["batch"] or 0)
        if row["mode"] != "agg" or groups == 1 or row["tensor_parallel"] != "1" or batch * groups > MAX_BATCH:
            continue
        split, dealt = int(row["expert_tensor_parallel"]), int(row["expert_parallel"])
        gpus = max(split, dealt)
        run = replace(_run(row), batch=batch * groups, data_parallel=gpus, expert_parallel=gpus if dealt > 1 else 1)
        if run.ttft_s <= MAX_TTFT_S:
            found[(run.gpu, run.dtype, run.ttft_s, run.tpot_s)] = run
    return tuple(found.values())
