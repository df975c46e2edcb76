"""Typed access to the fields of a `config.json`, with checks and recorded defaults; the longest context.

A family of models is described by sources of values, of which each is a constant or a function of the configuration:
`count("hidden_size")` is the source of a required count.
"""

from collections.abc import Callable, Mapping
from math import floor
from typing import Any

from app.fit.formulas.assumptions import Assumptions, InvalidWorkload

ArchitectureFields = dict[str, Any]
"""Some fields of an Architecture, by name."""

MAX_COUNT = 1_000_000_000
"""Larger than any width or count of a model; rejects absurd input before it is computed with."""
MAX_LAYERS = 10_000


class ConfigReader:
    """Reads fields of a configuration; records the defaults used for those that it leaves out."""

    def __init__(self, raw: Mapping[str, Any], assumptions: Assumptions, path: str = "config") -> None:
        self.raw, self._assumptions, self._path = raw, assumptions, path

    def within(self, raw: Mapping[str, Any], name: str) -> "ConfigReader":
        """Return a reader of an object under `name`."""
        return ConfigReader(raw, self._assumptions, f"{self._path}.{name}")

    def with_fields(self, raw: Mapping[str, Any]) -> "ConfigReader":
        """Return a reader of other fields in place of these."""
        return ConfigReader(raw, self._assumptions, self._path)

    def note(self, name: str, value: Any, why: str) -> None:
        """Record what is assumed of a field."""
        self._assumptions.record(f"{self._path}.{name}", value, why)

    def has(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        return self.raw.get(name) is not None

    def count(self, *names: str) -> int:
        """Return the positive integer under the first present name; raise InvalidWorkload where there is none."""
        value = self.optional_count(*names)
        if value is None:
            others = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
            raise InvalidWorkload(f"{self._path}.{names[0]}", f"is missing{others}")
        return value

    def optional_count(self, *names: str) -> int | None:
        """Return the positive integer under the first name that is present and not null; None where there is none."""
        name = next((name for name in names if self.has(name)), None)
        if name is None:
            return None
        value = self.raw[name]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_COUNT:
            raise InvalidWorkload(f"{self._path}.{name}", f"{value!r} is no whole number from 1 to {MAX_COUNT}")
        return value

    def number(self, *names: str) -> int:
        """Return the whole number under the first name that is present and not null; 0 where there is none."""
        name = next((name for name in names if self.has(name)), None)
        return 0 if name is None or self.raw[name] == 0 else self.count(name)

    def layers(self) -> int:
        """Return the number of layers: as stated, else as many as the list of their kinds has entries."""
        kinds = self.get_list("layers_block_type")
        if kinds and not self.has("num_hidden_layers"):
            return len(kinds)
        layers = self.count("num_hidden_layers", "n_layer", "n_layers", "num_layers")
        if layers > MAX_LAYERS:
            raise InvalidWorkload("config.num_hidden_layers", f"{layers} is more than {MAX_LAYERS}")
        return layers

    def count_or_default(self, name: str, value: int) -> int:
        """Return a count, or the family's default, which is recorded."""
        given = self.optional_count(name)
        if given is not None:
            return given
        return self._assumptions.record(f"{self._path}.{name}", value, "the family's default")

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean, or the family's default, which is recorded."""
        value = self.raw.get(name)
        if value is None:
            return self._assumptions.record(f"{self._path}.{name}", default, "the family's default")
        if not isinstance(value, bool):
            raise InvalidWorkload(f"{self._path}.{name}", f"{value!r} is neither true nor false")
        return value

    def get_list(self, name: str) -> list[Any]:
        """Return a list; empty where the field is missing."""
        value = self.raw.get(name)
        if value is not None and not isinstance(value, list):
            raise InvalidWorkload(f"{self._path}.{name}", f"{value!r} is no list")
        return value or []

    def require_one_of(self, name: str, *allowed: Any) -> None:
        """Reject any other value of a field that would change the model in a way that is not counted."""
        if self.has(name) and self.raw[name] not in allowed:
            choices = " or ".join(map(repr, allowed))
            raise InvalidWorkload(
                f"{self._path}.{name}", f"{self.raw[name]!r} is not understood, only {choices}; give architecture"
            )


Reader = Callable[[ConfigReader], Any]
Source = Reader | int | str | bool | None
"""A constant, or what reads the value."""
Part = Reader | Mapping[str, Source]
"""Some fields of an Architecture: a source for each, or a function that reads them together."""


def value_of(config: ConfigReader, source: Source) -> Any:
    """Return the value of a source in a configuration."""
    return source(config) if callable(source) else source


def read_fields(config: ConfigReader, *parts: Part) -> ArchitectureFields:
    """Return the fields of all parts; those of later parts take precedence."""
    fields: ArchitectureFields = {}
    for part in parts:
        own = part(config) if callable(part) else {name: value_of(config, source) for name, source in part.items()}
        fields |= own
    return fields


def count(*names: str) -> Reader:
    """Return the source of a required count under the first of several names."""
    return lambda config: config.count(*names)


def optional(*names: str) -> Reader:
    """Return the source of a count that may be missing."""
    return lambda config: config.optional_count(*names)


def default(name: str, value: int) -> Reader:
    """Return the source of a count with a default of the family."""
    return lambda config: config.count_or_default(name, value)


def number(*names: str) -> Reader:
    """Return the source of a count that may be zero or missing."""
    return lambda config: config.number(*names)


def flag(name: str, value: bool) -> Reader:
    """Return the source of a boolean with a default of the family, which is recorded."""
    return lambda config: config.flag(name, default=value)


def stated(name: str, otherwise: bool = False) -> Reader:
    """Return the source of a boolean that files of the family have only where it matters."""
    return lambda config: config.flag(name, default=otherwise) if config.has(name) else otherwise


def is_set(name: str, otherwise: bool = False) -> Reader:
    """Return the source of whether a field of any type is true."""
    return lambda config: bool(config.raw.get(name, otherwise))


def has(*names: str) -> Reader:
    """Return the source of whether all of these counts are present; each is checked, also beside one that is not."""
    return lambda config: None not in [config.optional_count(name) for name in names]


def choose(condition: Reader, yes: Source, no: Source = None) -> Reader:
    """Return the source of one of two values."""
    return lambda config: value_of(config, yes if condition(config) else no)


def only(name: str, *allowed: Source) -> Reader:
    """Return a part without fields that rejects any other value of a field."""

    def check(config: ConfigReader) -> ArchitectureFields:
        config.require_one_of(name, *(value_of(config, value) for value in allowed))
        return {}

    return check


SCALED_ROPE_TYPES = {"linear", "dynamic"}
"""RoPE scalings whose factor `max_position_embeddings` does not contain; for llama3, longrope, su and mrope it does."""


def longest_context(config: ConfigReader) -> int | None:
    """Return the longest context that a model supports, tokens; None where the file does not say.

    YaRN: original positions x factor; linear and dynamic: positions x factor, except for Gemma 3, whose file has the
    product; all others: the positions. Source: vLLM, vllm/config/model.py, where it derives the longest context.
    """
    positions = config.optional_count("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
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
    return floor(positions * factor) if str(kind) in SCALED_ROPE_TYPES and not gemma else positions
