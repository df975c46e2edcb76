"""API keys: which there are, and whose a presented one is. Only their hashes are kept."""

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

MIN_KEY_CHARACTERS = 24
"""Keys are random, so that SHA-256 without a salt keeps them: 24 characters of base64 have 144 bits."""

KEY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_KEY_HASH = re.compile(rf"(?P<name>{KEY_NAME.pattern}):(?P<sha256>[0-9a-f]{{64}})")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The name of a key's holder, and the SHA-256 of the key in hexadecimal."""

    name: str
    sha256: str


def parse_api_keys(lines: Iterable[str]) -> tuple[ApiKey, ...]:
    """Parse lines of `NAME:SHA256` or of keys as they are; blank lines and `#` comments are skipped.

    Raises ValueError with the number of the line and what is allowed, never with the key.
    """
    keys = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        if match := _KEY_HASH.fullmatch(line):
            keys.append(ApiKey(match["name"], match["sha256"]))
        elif len(line) >= MIN_KEY_CHARACTERS and line.isascii() and line.isprintable() and not set(line) & set(" :,"):
            digest = sha256(line.encode()).hexdigest()
            keys.append(ApiKey(f"key-{digest[:8]}", digest))
        else:
            raise ValueError(
                f"entry {number} is neither NAME:SHA256 nor a key of at least {MIN_KEY_CHARACTERS} ASCII characters "
                "without spaces, colons and commas"
            )
    return tuple(keys)


def find_api_key(presented: bytes, keys: Iterable[ApiKey]) -> ApiKey | None:
    """Return the key that a client presents; how long this takes reveals nothing about any key."""
    digest = sha256(presented).hexdigest()
    match = None
    for key in keys:  # all of them, so that the time does not depend on which one it is
        if hmac.compare_digest(key.sha256, digest):
            match = key
    return match
