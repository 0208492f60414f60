"""Export: a program and its adjoint as one file, of Python or of C, that needs nothing of tensorswap."""
