"""JOIN: the one use case that needs both the catalog and the arithmetic."""
