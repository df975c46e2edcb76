"""JOIN: a language model, and the sizes of the catalog or one described machine: where it fits, at what cost."""
