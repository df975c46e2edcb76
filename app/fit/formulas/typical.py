"""The shape of a typical transformer of so many parameters, for figures that hardly depend on it."""

from dataclasses import replace

from app.fit.formulas.architecture import Architecture

ASPECT = 100
"""Hidden width over layers: GPT-2 XL 33, Llama 65B 102, Llama 3.1 405B 130, GPT-3 128, BLOOM 205."""
HEAD_DIM = 128


def typical_shape(shape: Architecture) -> Architecture:
    """Fill layers and widths that are unknown from the parameters: N = 12 L h^2, h = 100 L; an estimate.

    Good for what grows with L h = (N / 12)^(2/3) / 100^(1/3): activations and adapters of the models above are within
    a third. A KV cache is not: it depends on how many heads share their keys. Derived here from Kaplan et al., arXiv
    2001.08361, section 2.1.
    """
    (params,) = shape.known("params")
    layers = max(1, round((params / (12 * ASPECT**2)) ** (1 / 3))) if shape.layers is None else shape.layers
    width = (params / (12 * layers)) ** 0.5 if shape.hidden is None else shape.hidden
    heads = max(1, round(width / HEAD_DIM)) if shape.heads is None else shape.heads
    hidden = heads * HEAD_DIM if shape.hidden is None else shape.hidden
    return replace(
        shape,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads if shape.kv_heads is None else shape.kv_heads,
        head_dim=max(1, hidden // heads) if shape.head_dim is None else shape.head_dim,
        intermediate=hidden * 8 // 3 if shape.intermediate is None else shape.intermediate,
    )
