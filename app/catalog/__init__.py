"""The catalog: sizes, what each source states of them, which statement is accepted, and what they cost."""
