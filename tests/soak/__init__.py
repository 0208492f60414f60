"""The long soak: `python -m tests.soak`, or `make soak`."""
