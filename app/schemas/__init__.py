"""The shapes of requests (`…In`) and responses (`…Out`), as pydantic models: the JSON of every entry point."""
