"""Training methods: what a client computes in a round and how the server aggregates."""
