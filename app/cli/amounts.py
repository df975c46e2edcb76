"""Amounts as people write them: `32k`, `100M`, `1/6`, `H100:8`, `float16`."""

import re
from collections.abc import Callable
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import typer

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "b": 3, "t": 4}
_AMOUNT = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?(?:e\+?\d{1,2})?)\s*(?P<suffix>[kmgbt]?)i?", re.IGNORECASE)


def amount(base: int) -> Callable[[Any], Any]:
    """Read a whole amount with a suffix: k, M, G (or B) and T are powers of `base`."""

    def read(text: Any) -> Any:
        written = _AMOUNT.fullmatch(str(text).strip())
        if written is None:
            raise typer.BadParameter(f"{text!r} is no amount; write 32768, 1e8, 32k, 100M, 2G or 1T")
        value = Decimal(re.sub(r"[_,]", "", written["number"])) * base ** _POWERS[written["suffix"].lower()]
        if value != value.to_integral_value():
            raise typer.BadParameter(f"{text!r} is {value.normalize():f}, and must be a whole number")
        return int(value)

    read.__name__ = "amount"
    return read


_SPELLED = {
    "float32": "fp32", "float": "fp32", "single": "fp32", "float16": "fp16", "half": "fp16", "16bit": None,
    "bfloat16": "bf16", "float8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8", "float8_e4m3": "fp8", "float8_e5m2": "fp8", "awq": "awq_int4", "gptq": "gptq_int4",
    "float4": "fp4", "mx4": "mxfp4", "nvfp": "nvfp4", "w8a8": None, "32bit": "fp32",
}  # fmt: skip
"""Other spellings of types of numbers; None where one means several of them."""
_MEANINGS = {
    "4bit": ("int4", "awq_int4", "gptq_int4", "nf4", "fp4", "mxfp4", "nvfp4"),
    "8bit": ("int8", "fp8"),
    "16bit": ("bf16", "fp16"),
    "w8a8": ("int8", "fp8"),
    "q4": ("gguf_q4_k_m", "gguf_q4_k_s"),
    "gguf": ("gguf_q4_k_m", "gguf_q5_k_m", "gguf_q6_k", "gguf_q8_0"),
}
"""What says less than a type: which could be meant."""


def dtype(text: Any) -> Any:
    """Read a type of numbers in any case and common spelling; one that means several, or none, names the nearest."""
    from app.fit.formulas.memory import BITS

    word = str(text).strip().lower().replace("-", "_")
    word = re.sub(r"^(\d+)_bits?$", r"\1bit", word)
    for known in (word, _SPELLED.get(word), f"gguf_{word}"):
        if known in BITS:
            return known
    meant = _MEANINGS.get(word) or get_close_matches(word, BITS, 4, 0.5)
    nearest = f"it could be {', '.join(meant)}" if meant else "common ones are bf16, fp16, fp8, int8, int4, mxfp4"
    raise typer.BadParameter(f"{text!r} is no type of numbers; {nearest}; --help lists all")


_GPU_AND_COUNT = re.compile(r"(?P<gpu>.+):(?P<count>\d+(?:\.\d+)?(?:/\d+)?)")


def gpu_and_count(text: str) -> tuple[str, str | None]:
    """Split `H100:8` into a GPU and how many of it, as others write it."""
    written = _GPU_AND_COUNT.fullmatch(text.strip())
    return (written["gpu"], written["count"]) if written else (text.strip(), None)
