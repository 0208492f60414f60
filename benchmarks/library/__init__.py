"""Ops of the standard library against PyTorch: forward and backward pass, on sizes such as users have."""
