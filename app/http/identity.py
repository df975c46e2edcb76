"""The id of a request: the client's own where it has one, so that its log and ours tell of the same thing."""

import re
import secrets
from itertools import count

REQUEST_ID = "vmsizes.request_id"
"""Where the id stands in a request's scope."""

PUBLIC_URL = "vmsizes.public_url"
"""Where the URL at which clients reach the service stands in a request's scope; empty where it is not known."""

_TAKEN = re.compile(rb"[A-Za-z0-9_-]{1,128}")
_PROCESS = secrets.token_hex(6).encode()
_NUMBERS = count(1)


def request_id(given: bytes) -> bytes:
    """Take the id that was given where it is one, else make one: this process, and a number."""
    return given if given and _TAKEN.fullmatch(given) else b"%s-%x" % (_PROCESS, next(_NUMBERS))
