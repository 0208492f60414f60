"""numpy's own tests of np.einsum, from the numpy that is installed, with ts.einsum in its place."""
