"""The benchmarks: our runtime and its peers, the same work, the same fake vendor, one run."""
