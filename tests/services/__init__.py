"""Use cases over several packages."""
