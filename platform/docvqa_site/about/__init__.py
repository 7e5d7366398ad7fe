"""Who runs the benchmark, how to reach them, and how to cite it."""
