"""What a language model needs: memory, time and cost, from its shape and a workload; pure arithmetic."""
