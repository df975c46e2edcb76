"""Runs the service under uvicorn: bounds on connections and slow clients, shutdown, worker processes."""
