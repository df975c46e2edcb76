"""Recorded responses of the service, which references send or take their columns from."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedResponse:
    """The response to one target; `headers` are those of the application without the content length."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def save_responses(responses: Mapping[str, RecordedResponse], file: Path) -> None:
    """Write the responses to a file, by target."""
    recorded = {
        target: {
            "status": response.status,
            "headers": response.headers,
            "body": base64.b64encode(response.body).decode(),
        }
        for target, response in responses.items()
    }
    file.write_text(json.dumps(recorded))


def load_responses(file: Path) -> dict[str, RecordedResponse]:
    """Read recorded responses, by target."""
    recorded = json.loads(file.read_text())
    return {
        target: RecordedResponse(
            status=response["status"],
            headers=tuple((name, value) for name, value in response["headers"]),
            body=base64.b64decode(response["body"]),
        )
        for target, response in recorded.items()
    }
