"""The request bodies of POST /fit and POST /estimate."""

INFERENCE = {"dtype": "bf16", "context_tokens": 8192, "concurrency": 32}
FIT = {"model": "llama-3.1-70b", "inference": INFERENCE, "constraints": {"regions": ["eastus"]}}
"""Which sizes in one region serve Llama 3.1 70B, of the whole catalog of the seeds."""

ESTIMATE = {"model": "llama-3.1-70b", "inference": INFERENCE}
