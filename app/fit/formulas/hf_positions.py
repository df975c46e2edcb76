"""The longest context of a `config.json`: its positions, and what a rotary embedding is scaled to."""

from collections.abc import Mapping
from math import floor

from app.fit.formulas.hf_fields import Config

STRETCHING = {"linear", "dynamic"}
"""Kinds of scaling whose factor is not in `max_position_embeddings`; of llama3, longrope, su and mrope it is."""


def longest_context(config: Config) -> int | None:
    """Say how many tokens a model is made for; None where the file does not say.

    YaRN: original positions x factor; linear and dynamic: positions x factor, but of Gemma 3, whose file has the
    product; all else: the positions. Source: vLLM, vllm/config/model.py, where it derives the longest context.
    """
    positions = config.maybe("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    scaling = config.raw.get("rope_scaling") or config.raw.get("rope_parameters")
    if positions is None or not isinstance(scaling, Mapping):
        return positions
    kind, factor = scaling.get("rope_type", scaling.get("type")), scaling.get("factor")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor <= 1024:  # noqa: PLR2004
        return positions
    if kind == "yarn":
        original = scaling.get("original_max_position_embeddings")
        return floor((original if type(original) is int and original > 0 else positions) * factor)
    gemma = str(config.raw.get("model_type")).startswith("gemma3")
    return floor(positions * factor) if kind in STRETCHING and not gemma else positions
