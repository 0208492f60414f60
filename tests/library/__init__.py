"""The standard library against PyTorch: one table of ops, their oracles and their cases."""
