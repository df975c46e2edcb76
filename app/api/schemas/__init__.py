"""The shapes of requests (`…In`) and responses (`…Out`), as pydantic models."""
