"""Explanations: where each adjoint statement comes from, as data, and as text for people."""
