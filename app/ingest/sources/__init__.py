"""One module a kind of source: `read…` does I/O, `to_…` is a pure mapping."""
