"""ts.torch: programs as operators of PyTorch.

tensors       PyTorch's tensors <-> numpy's arrays, without copies
work          what an operator does: values, shapes, gradients, tangents, batches
operators     the same as operators of torch.library, for graphs
eager_step    the same as one step of autograd, for calls outside of graphs
torch_program ts.torch(p)
module        ts.torch.Module
torch_bridge  ts.torch itself
"""
