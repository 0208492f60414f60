"""ts.jax: programs as functions of JAX's arrays.

jax_program    ts.jax(p): arguments by name
primitive      the primitive behind it: values, shapes, and a rule for each of JAX's transformations
lowering       what compiled code calls: a foreign function, or a callback where that cannot be
foreign_call   XLA's frames of arguments, read without a C compiler
"""
