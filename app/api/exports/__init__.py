"""Exports: whole lists as files, streamed as they are read, or made once and kept where a client may ask for parts."""
