"""Reads the files of a model that commands take: its `config.json`, and the index or headers of its checkpoint."""

import json
from pathlib import Path
from typing import Any, BinaryIO

from app.errors import BadQuery

MAX_HEADER_BYTES = 100_000_000
"""The longest header that the safetensors library reads."""


def read_model_files(config: str | None, safetensors: str | None) -> dict[str, Any]:
    """Return the fields of a body that the files give; raises BadQuery naming a file that cannot be read."""
    fields: dict[str, Any] = {}
    if config is not None:
        fields["config"] = _read_json("--config", Path(config))
    if safetensors is not None:
        fields["safetensors"] = _read_checkpoint(Path(safetensors))
    return fields


def _read_checkpoint(path: Path) -> dict[str, Any]:
    """Return an index, or the tensors of the headers of one file or of all files of a folder."""
    if path.suffix == ".json":
        return _read_json("--safetensors", path)
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files:
        raise BadQuery("--safetensors", str(path), "has no .safetensors files")
    return {name: tensor for file in files for name, tensor in _read_header(file).items()}


def _read_json(option: str, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadQuery(option, str(path), f"cannot be read as JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadQuery(option, str(path), "holds no JSON object")
    return found


def _read_header(path: Path) -> dict[str, Any]:
    """Return the header of a file: 8 bytes with its length, little-endian, and as many bytes of JSON."""
    try:
        with path.open("rb") as file:
            header = json.loads(_header_bytes(file))
    except (OSError, ValueError) as error:
        raise BadQuery("--safetensors", str(path), f"has no header of safetensors: {error}") from None
    if not isinstance(header, dict):
        raise BadQuery("--safetensors", str(path), "has no header of safetensors: it holds no JSON object")
    return header


def _header_bytes(file: BinaryIO) -> bytes:
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= MAX_HEADER_BYTES:
        raise ValueError(f"a length of {length} bytes")
    return file.read(length)
