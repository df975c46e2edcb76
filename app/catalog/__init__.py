"""KNOW: the sizes, what each source says of them, which word is accepted, and what they cost."""
