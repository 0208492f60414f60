"""ts.torch: programs as operators of PyTorch.

tensors       PyTorch's tensors <-> numpy's arrays, without copies
family        a program and those derived from it: values, shapes, gradients, tangents, batches
library_operators  the same as operators of torch.library, for graphs
eager_step    the same as one step of autograd, for calls outside of graphs
torch_program ts.torch(p)
module        ts.torch.Module
torch_bridge  ts.torch itself
"""
