"""What released checkpoints take, bytes, and who says so: what the presets' sizes are compared with."""

CHECKPOINTS: dict[str, tuple[int, str]] = {
    "gpt-oss-20b": (13_761_264_768, "model.safetensors.index.json, total_size"),
    "gpt-oss-120b": (65_248_815_744, "model.safetensors.index.json, total_size; the model card says 60.8 GiB"),
    "deepseek-v3": (688_586_727_753, "the files of the repository, headers included"),
    "deepseek-r1": (688_586_727_753, "the same shape and types as DeepSeek-V3"),
    "kimi-k2": (1_029_000_000_000, "vLLM recipes: 959 GiB in block FP8, rounded"),
    "llama-3.1-70b": (141_107_412_992, "model.safetensors.index.json, total_size"),
    "llama-3.3-70b": (141_107_412_992, "the same shape and type as Llama 3.1 70B"),
    "mixtral-8x7b": (93_405_585_408, "model.safetensors.index.json, total_size"),
    "qwen3-30b-a3b": (61_064_245_248, "model.safetensors.index.json, total_size"),
    "qwen3-14b": (29_549_000_000, "a server's log: 27.52 GiB, rounded"),
}
"""Sizes that were published as such, in bytes of the files or of a log."""

BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
"""Of one parameter; a checkpoint of N published parameters in one such type takes N times as much."""
