"""A second generator of programs, with a parser and an evaluator of its own.

write     one integer seed -> a program's text, its arrays and the size of everything
parse     text -> a tree, by a parser that knows the grammar page and not the library
evaluate  the tree point by point in plain Python numbers
grid      the same tree in JAX, each statement on its whole grid of points
check     one program through the library: against evaluate, compiled, derivatives
passes    one program before and after every pass
shrink    a failing program made small
campaign  many programs, for the test run and the soak
"""
