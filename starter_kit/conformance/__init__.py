"""Does a private method do what it claims? It is run as a black box on synthetic data, and what comes out is tested.

A method's plan states what its rounds release (`Guarantee.released`): whom the release protects, how much one of them
may contribute, what noise covers it, by which chances they take part. The harness runs the method with the server,
participants, engine and aggregation of a training run, on data whose updates are recognizable, and compares what was
released with these claims.

Guarantees that a method that keeps its claims fails with a probability below 10⁻⁹ in one examination
(`statistics.LIMIT`). Assumes that a provider whose gradient is zero outside of some coordinates changes the sum only
there, and that the noise of a method whose messages depend on earlier ones dominates once σ is large.

What this does not do: it examines code, not a run. Nothing here shows that this code made a checkpoint, and a method
that recognizes the harness can behave while it is watched. What each test can't see is in docs/conformance.md.
"""
