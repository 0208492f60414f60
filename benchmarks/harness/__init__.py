"""The machinery of the benchmarks: worker processes, checks, rounds, memory, roofline, and the report."""
