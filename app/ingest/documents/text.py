"""Bytes to lines: encodings are mended line by line, so that a line keeps its number."""

import codecs
import re

import ftfy

_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad\x00]")
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_MANGLED = re.compile("[ÂÃâ][^\x00-\x7f]+")
_LINE_END = re.compile(r"\r\n?|\n")


def is_binary(data: bytes) -> bool:
    """Say whether bytes are no text: a NUL is in no page, but in nearly every program, image or archive."""
    return b"\x00" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decode(data: bytes) -> str:
    """Decode what should be UTF-8; a file with stray bytes is taken for Windows-1252, never refused."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def to_lines(data: bytes) -> list[str]:
    """Split into lines without their ends; UTF-8 once read as Windows-1252 is turned back into what was meant."""
    return [_mended(line) for line in _LINE_END.split(decode(data))]


def _mended(line: str) -> str:
    if not line.isascii():
        line = _MANGLED.sub(_decoded, ftfy.fix_encoding(line))
    return _SPACES.sub(" ", _INVISIBLE.sub("", line))


def _decoded(found: re.Match[str]) -> str:
    """Mend what ftfy leaves alone because it could be meant: `â„¢` in an otherwise sound line."""
    try:
        return found[0].encode("sloppy-windows-1252").decode()
    except UnicodeError:
        return found[0]
