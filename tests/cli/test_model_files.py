"""`vmsizes estimate` and `vmsizes fit` with the files of a model: its configuration and its checkpoint."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.estimate import read_model_files
from app.errors import BadQuery

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000, "tie_word_embeddings": False,
}  # fmt: skip
HEADER: dict[str, Any] = {"w": {"dtype": "BF16", "shape": [10, 10], "data_offsets": [0, 200]}}


def write_checkpoint(path: Path, header: dict[str, Any] = HEADER) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 200)
    return path


def test_a_configuration_may_be_longer_than_a_request(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"notes": "x" * 2_500_000}))
    assert read_model_files(str(path), None)["config"]["vocab_size"] == 1000


def test_the_headers_of_all_files_of_a_folder_are_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model-1.safetensors")
    other = {"v": HEADER["w"]}
    write_checkpoint(tmp_path / "model-2.safetensors", other)
    assert read_model_files(None, str(tmp_path)) == {"safetensors": HEADER | other}
    assert read_model_files(None, str(tmp_path / "model-1.safetensors")) == {"safetensors": HEADER}


def test_an_index_is_read_as_it_is(tmp_path: Path) -> None:
    index = {"metadata": {"total_size": 400}, "weight_map": {}}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    assert read_model_files(None, str(path)) == {"safetensors": index}


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, (5).to_bytes(8, "little") + b"{nope"])
def test_a_file_without_a_header_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(BadQuery, match="has no header of safetensors"):
        read_model_files(None, str(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadQuery, match="cannot be read as JSON"):
        read_model_files(str(tmp_path / "none.json"), None)
    with pytest.raises(BadQuery, match="has no"):
        read_model_files(None, str(tmp_path))
