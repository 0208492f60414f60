"""PyTorch's own sample inputs, given to the ops that this library has too: `python -m tests.opinfo --help`."""
