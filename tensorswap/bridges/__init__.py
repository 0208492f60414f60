"""Bridges: programs as operators of other frameworks, which keep the rest of a model.

derived       the programs that a framework asks for (derivatives, batches), by a text that names them
pytorch       ts.torch: operators of torch.library
jax_arrays    ts.jax: a primitive with rules for every transformation
"""
