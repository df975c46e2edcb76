"""Bits of a weight by the name of its data type or quantization."""

import re

FULL_BITS: dict[str, float] = {
    "fp32": 32, "tf32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4, "fp4": 4,
}  # fmt: skip
"""Bits of a value. Below 16 bits: of a weight without its scales, and some weights stay in 16 bits."""

QUANTIZED_BITS: dict[str, float] = {
    "nf4": 4.5,
    "nf4_dq": 4.127,
    "gptq_int4": 4.203125,
    "awq_int4": 4.203125,
    "mxfp4": 4.25,
    "nvfp4": 4.5,
}
"""Bits of a quantized weight with its scales; embeddings, output layer, norms and routers stay 16-bit.

NF4 in blocks of 64, and with double quantization, saving 0.373 bits: QLoRA, arXiv 2305.14314, section 3. GPTQ and AWQ
in groups of 128 with a 16-bit scale and a zero point of 4 bits (4.156) to 16 (4.25): between the two. MXFP4 in blocks
of 32 with an 8-bit scale: OCP MX 1.0. NVFP4 in blocks of 16 with an 8-bit scale.
"""

FILE_BITS: dict[str, float] = {
    "gguf_iq1_s": 2.0042, "gguf_iq1_m": 2.1460, "gguf_iq2_xxs": 2.3824, "gguf_iq2_xs": 2.5882, "gguf_iq2_s": 2.7403,
    "gguf_iq2_m": 2.9294, "gguf_iq3_xxs": 3.2548, "gguf_iq3_xs": 3.4977, "gguf_iq3_s": 3.6606, "gguf_iq3_m": 3.7628,
    "gguf_iq4_xs": 4.4597, "gguf_iq4_nl": 4.6818, "gguf_q2_k_s": 2.9697, "gguf_q2_k": 3.1593, "gguf_q3_k_s": 3.6429,
    "gguf_q3_k_m": 3.9960, "gguf_q3_k_l": 4.2979, "gguf_q4_k_s": 4.6672, "gguf_q4_k_m": 4.8944, "gguf_q5_k_s": 5.5704,
    "gguf_q5_k_m": 5.7036, "gguf_q6_k": 6.5633, "gguf_q8_0": 8.5008, "gguf_f16": 16.0005,
}  # fmt: skip
"""Bits a weight of a whole GGUF file, embeddings included, as measured on Llama-3.1-8B.

Source: llama.cpp, tools/quantize/README.md. Another model mixes its tensors in other shares: an estimate.
"""

BITS = FULL_BITS | QUANTIZED_BITS | FILE_BITS
"""Bits per weight of every named type of weights."""

ALIASES = {
    "float32": "fp32", "float": "fp32", "single": "fp32", "32bit": "fp32", "float16": "fp16", "half": "fp16",
    "bfloat16": "bf16", "float8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8", "float8_e4m3": "fp8", "float8_e5m2": "fp8", "awq": "awq_int4", "gptq": "gptq_int4",
    "float4": "fp4", "mx4": "mxfp4", "nvfp": "nvfp4",
}  # fmt: skip
"""Types by other common names."""


def to_dtype(text: str) -> str:
    """Return the type of a name in any case and common spelling: `Q4_K_M`, `float16`; other names in lower case."""
    name = re.sub(r"^(\d+)_bits?$", r"\1bit", text.strip().lower().replace("-", "_"))
    return next((known for known in (name, ALIASES.get(name), f"gguf_{name}") if known in BITS), name)
