"""The weight matrices of a model by name, as its checkpoint has them: what a quantization stores in fewer bits."""

from collections.abc import Iterator
from dataclasses import dataclass

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.quantization import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightMatrix:
    """A matrix that each of some layers has: so many rows (outputs) of so many weights, and so many copies of it.

    `name` is that within a layer, `{expert}` the number of an expert; `layers` is empty of what is outside of layers.
    """

    name: str
    part: Part
    rows: int
    columns: int
    layers: range
    copies: int = 1

    @property
    def params(self) -> int:
        """The weights of one."""
        return self.rows * self.columns

    @property
    def count(self) -> int:
        """How many there are in the model."""
        return self.copies * (len(self.layers) or 1)


def weight_matrices(shape: Architecture) -> tuple[WeightMatrix, ...]:
    """List the matrices of a shape that misses nothing (missing_for_count is empty).

    Layers with experts come after the dense ones. The names are those of Hugging Face transformers.
    """
    layers, hidden, vocab = shape.known("layers", "hidden", "vocab")
    found = [*_attention(shape, range(layers))]
    dense = layers - shape.layers_with_experts
    if dense:
        found += _mlp(shape, "mlp", shape.known("intermediate")[0], range(dense))
    if shape.experts is not None and shape.expert_width is not None:
        sparse = range(dense, layers)
        found += _mlp(shape, "experts", shape.expert_width, sparse, copies=shape.experts)
        if shape.shared_intermediate:
            found += _mlp(shape, "shared_experts", shape.shared_intermediate, sparse)
    if not shape.tied_embeddings:
        found.append(WeightMatrix(name="lm_head", part="lm_head", rows=vocab, columns=hidden, layers=range(0)))
    return tuple(found)


def _attention(shape: Architecture, layers: range) -> Iterator[WeightMatrix]:
    sizes = _latent(shape) if shape.kv_lora_rank is not None else _heads(shape)
    for name, (rows, columns) in sizes.items():
        yield WeightMatrix(name=f"self_attn.{name}", part="attention", rows=rows, columns=columns, layers=layers)


def _heads(shape: Architecture) -> dict[str, tuple[int, int]]:
    hidden, heads, kv_heads, head_dim = shape.known("hidden", "heads", "kv_heads", "head_dim")
    queries, keys = heads * head_dim, kv_heads * head_dim
    inward = {"q_proj": (queries, hidden), "k_proj": (keys, hidden), "v_proj": (keys, hidden)}
    return inward | {"o_proj": (hidden, queries)}


def _latent(shape: Architecture) -> dict[str, tuple[int, int]]:
    hidden, heads, latent = shape.known("hidden", "heads", "kv_lora_rank")
    nope, rope, values = shape.known("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    rank, queries = shape.q_lora_rank, heads * (nope + rope)
    first = {"q_proj": (queries, hidden)}
    if rank is not None:
        first = {"q_a_proj": (rank, hidden), "q_b_proj": (queries, rank)}
    return first | {
        "kv_a_proj_with_mqa": (latent + rope, hidden),
        "kv_b_proj": (heads * (nope + values), latent),
        "o_proj": (hidden, heads * values),
    }


_PREFIX: dict[Part, str] = {"mlp": "mlp", "experts": "mlp.experts.{expert}", "shared_experts": "mlp.shared_experts"}


def _mlp(shape: Architecture, part: Part, width: int, layers: range, copies: int = 1) -> Iterator[WeightMatrix]:
    (hidden,) = shape.known("hidden")
    sizes = {"gate_proj": (width, hidden)} if shape.gated else {}
    for name, (rows, columns) in (sizes | {"up_proj": (width, hidden), "down_proj": (hidden, width)}).items():
        full = f"{_PREFIX[part]}.{name}"
        yield WeightMatrix(name=full, part=part, rows=rows, columns=columns, layers=layers, copies=copies)
