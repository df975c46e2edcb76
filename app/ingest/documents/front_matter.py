"""The front matter of a page: YAML where it is YAML, else its `key: value` lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import yaml

_KEY = re.compile(r"^\s?([A-Za-z_][\w.-]*):\s*(.*?)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The keys of a page in lower case, the line each stands on, and the number of the first line after it."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    body: int = 1

    def first(self, *keys: str) -> str | None:
        """Give the value of the first of the keys that is there and not empty."""
        return next((self.values[key] for key in keys if self.values.get(key)), None)

    @property
    def is_microsoft(self) -> bool:
        """Say whether it has the keys that Microsoft's own pages have."""
        return any(key.startswith("ms.") for key in self.values)


def to_front_matter(lines: Sequence[str]) -> FrontMatter:
    """Read what stands between the first two `---`; a page without has none, which is no error."""
    start = next((at for at, line in enumerate(lines) if line.strip()), None)
    if start is None or lines[start].strip() != "---":
        return FrontMatter()
    end = next((at for at in range(start + 1, len(lines)) if lines[at].strip() in ("---", "...")), None)
    if end is None:
        return FrontMatter()
    block = lines[start + 1 : end]
    found = {match[1].lower(): at for at, line in enumerate(block) if (match := _KEY.match(line))}
    if block and not found:
        return FrontMatter()
    plain = {match[1].lower(): match[2].strip("'\" ") for line in block if (match := _KEY.match(line))}
    return FrontMatter(
        values=plain | _yaml(block), lines={key: start + 2 + at for key, at in found.items()}, body=end + 2
    )


def _yaml(block: Sequence[str]) -> dict[str, str]:
    try:
        data = yaml.load("\n".join(block), Loader=yaml.BaseLoader)  # noqa: S506  # BaseLoader makes strings only
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {str(key).lower(): value.strip() for key, value in data.items() if isinstance(value, str)}
