"""Readers of values as people write them: amounts such as `32k`, number types, a GPU with its count."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import typer


@dataclass(frozen=True, slots=True)
class ParsedBy:
    """Annotates a field whose option has a parser of its own."""

    parse: Callable[[Any], Any]


_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "b": 3, "t": 4}
_AMOUNT = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?(?:e\+?\d{1,2})?)\s*(?P<suffix>[kmgbt]?)i?", re.IGNORECASE)


def amount_parser(base: int) -> Callable[[Any], Any]:
    """Return a parser of whole amounts in which the suffixes k, M, G (or B) and T are powers of `base`."""

    def parse(text: Any) -> Any:
        match = _AMOUNT.fullmatch(str(text).strip())
        if match is None:
            raise typer.BadParameter(f"{text!r} is not an amount; write 32768, 1e8, 32k, 100M, 2G or 1T")
        value = Decimal(re.sub(r"[_,]", "", match["number"])) * base ** _POWERS[match["suffix"].lower()]
        if value != value.to_integral_value():
            raise typer.BadParameter(f"{text!r} is {value.normalize():f}, and must be a whole number")
        return int(value)

    parse.__name__ = "amount"  # Typer shows it in messages
    return parse


_GIB = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[gt])(?:i?b)?", re.IGNORECASE)


def parse_gib(text: Any) -> Any:
    """Return the GiB of `80GB` (which vendors write for GiB), `80 GiB` or `1.5 TiB`; any other text unchanged."""
    match = _GIB.fullmatch(str(text).strip())
    return str(Decimal(match["number"]) * (1024 if match["unit"] in "tT" else 1)) if match else text


_AMBIGUOUS_DTYPES = {
    "4bit": ("int4", "awq_int4", "gptq_int4", "nf4", "fp4", "mxfp4", "nvfp4"),
    "8bit": ("int8", "fp8"),
    "16bit": ("bf16", "fp16"),
    "w8a8": ("int8", "fp8"),
    "q4": ("gguf_q4_k_m", "gguf_q4_k_s"),
    "gguf": ("gguf_q4_k_m", "gguf_q5_k_m", "gguf_q6_k", "gguf_q8_0"),
}
"""Names that could mean several number types: refused, with the types they could mean."""


def parse_dtype(text: Any) -> Any:
    """Return the number type of a name in any case and common spelling; raises BadParameter naming the nearest."""
    from app.fit.formulas.data_types import BITS, to_dtype

    name = to_dtype(str(text))
    if name in BITS:
        return name
    near = _AMBIGUOUS_DTYPES.get(name) or get_close_matches(name, BITS, 4, 0.5)
    hint = f"it could be {', '.join(near)}" if near else "common ones are bf16, fp16, fp8, int8, int4, mxfp4"
    raise typer.BadParameter(f"{text!r} is not a number type; {hint}; --help lists all")


_GPU_AND_COUNT = re.compile(r"(?P<gpu>.+):(?P<count>\d+(?:\.\d+)?(?:/\d+)?)")


def parse_gpu_and_count(text: str) -> tuple[str, str | None]:
    """Split `H100:8`, as other tools write it, into the name of a GPU and the number of them."""
    match = _GPU_AND_COUNT.fullmatch(text.strip())
    return (match["gpu"], match["count"]) if match else (text.strip(), None)


# Choices and shell completion
