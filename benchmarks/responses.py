"""What a server said, and how the service's own answers are kept for the sides that it is measured against."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResponse:
    """What a server said to one target; `headers` are all that the application gave but the length."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def save_responses(answers: Mapping[str, RecordedResponse], file: Path) -> None:
    """Keep the answers of the service where a bare side finds them."""
    kept = {
        target: {"status": answer.status, "headers": answer.headers, "body": base64.b64encode(answer.body).decode()}
        for target, answer in answers.items()
    }
    file.write_text(json.dumps(kept))


def load_responses(file: Path) -> dict[str, RecordedResponse]:
    """Read kept answers, by their targets."""
    told = json.loads(file.read_text())
    return {
        target: RecordedResponse(
            status=answer["status"],
            headers=tuple((name, value) for name, value in answer["headers"]),
            body=base64.b64decode(answer["body"]),
        )
        for target, answer in told.items()
    }
