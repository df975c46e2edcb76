"""Comparing: sizes side by side, and sizes that are alike, as they are answered over HTTP."""
