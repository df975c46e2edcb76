"""ASK: from a typed question to rows, by SQL that is built once in one place."""
