"""One file for each library: how it takes a workload, runs it, and gives its results as numpy arrays."""
