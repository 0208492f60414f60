"""Backward: from one tensor to all that it was computed from, each after all that use it; nothing recurses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..run.arguments import as_array
from .scalar import Scalar
from .tensor import CONSTANT, LEAF, OPEN, SPENT, Array, Tensor


def backward(root: Tensor, seed: Any = None) -> None:
    """Fills the gradients behind `root`, whose own gradient is the seed."""
    grad = _seed(root, seed)
    if root.uses == LEAF:
        _collect(root, grad)
        return
    if root.uses == SPENT:
        raise _spent()
    _count(root)
    root.grad = grad
    if type(root) is Scalar:
        _pull(root)
    else:
        with np.errstate(all="ignore"):  # on the way back an infinite slope is a value like any other
            _pull(root)


def _seed(root: Tensor, seed: Any) -> Any:
    if root.uses == CONSTANT:
        raise ArgumentError(
            "this tensor is a constant: no gradient goes back from it",
            hint="integers and what detach() gives have none; call backward on what was computed from ts.tensor(...)",
        )
    if seed is None:
        if root.shape:
            raise ShapeError(
                f"backward from a tensor of shape {root.shape} needs the gradient to start from",
                hint="pass it, backward(seed=array), or reduce to one number first: t.sum().backward()",
            )
        return 1.0 if type(root.value) is float else root.dtype.type(1)
    value = seed.value if isinstance(seed, Tensor) else seed
    array = np.array(as_array("the seed", value), root.dtype)
    if array.shape != root.shape:
        raise ShapeError(
            f"the seed has shape {array.shape}, the tensor {root.shape}", hint="a gradient has the shape of its value"
        )
    return float(array) if type(root.value) is float else array


def _spent() -> ArgumentError:
    return ArgumentError(
        "backward has been through this graph already, and what it led to is forgotten",
        hint="compute the values again, or add the results up and call backward once: (a + b).backward()",
    )


# The two passes below are written out for scalars, left and right: a call for each link would double their time.


def _count(root: Tensor) -> None:
    """Counts how often each tensor behind `root` is used: so many gradients will be added up before it goes on."""
    stack = [root]
    push = stack.append
    try:
        while stack:
            node = stack.pop()
            if type(node) is Scalar:
                parent = node.left
                assert parent is not None, "only leaves have no links"
                uses = parent.uses
                if uses > 0:
                    parent.uses = uses + 1
                elif uses == OPEN:
                    parent.uses, parent.grad = 1, 0.0
                    push(parent)
                elif uses == SPENT:
                    raise _spent()
                parent = node.right
                if parent is not None:
                    uses = parent.uses
                    if uses > 0:
                        parent.uses = uses + 1
                    elif uses == OPEN:
                        parent.uses, parent.grad = 1, 0.0
                        push(parent)
                    elif uses == SPENT:
                        raise _spent()
                continue
            for parent in _parents(node):
                uses = parent.uses
                if uses > 0:
                    parent.uses = uses + 1
                elif uses == OPEN:
                    parent.uses, parent.grad = 1, 0.0 if type(parent) is Scalar else None
                    push(parent)
                elif uses == SPENT:
                    raise _spent()
    except BaseException:
        _reset([root], OPEN)
        raise


def _pull(root: Tensor) -> None:
    """Hands each gradient on to the tensors behind it, once it is complete, and forgets the way."""
    stack = [root]
    push = stack.append
    node = root
    try:
        while stack:
            node = stack.pop()
            if type(node) is Scalar:  # both links written out: a call for each would take longer than its work
                grad = node.grad
                parent = node.left
                assert parent is not None, "only leaves have no links"
                uses = parent.uses
                if uses > 0:
                    parent.grad += grad * node.left_slope
                    parent.uses = uses - 1
                    if uses == 1:
                        push(parent)
                elif uses == LEAF:
                    part = grad * node.left_slope
                    parent.grad = part if parent.grad is None else parent.grad + part
                parent = node.right
                if parent is not None:
                    uses = parent.uses
                    if uses > 0:
                        parent.grad += grad * node.right_slope
                        parent.uses = uses - 1
                        if uses == 1:
                            push(parent)
                    elif uses == LEAF:
                        part = grad * node.right_slope
                        parent.grad = part if parent.grad is None else parent.grad + part
                node.left = node.right = None
                node.uses = SPENT
                continue
            assert isinstance(node, Array)
            assert node.pull is not None
            grad = node.grad
            if isinstance(grad, np.ndarray):
                grad.flags.writeable = False  # parents may share it
            for parent, part in zip(node.parents, node.pull(grad), strict=True):
                uses = parent.uses
                if uses > 0:
                    parent.grad = part if parent.grad is None else parent.grad + part
                    parent.uses = uses - 1
                    if uses == 1:
                        push(parent)
                elif uses == LEAF:
                    _collect(parent, part, grad)
            node.parents, node.pull, node.uses = (), None, SPENT
    except BaseException:
        _reset([node, *stack], SPENT)
        raise


def _collect(leaf: Tensor, part: Any, shared: Any = None) -> None:
    """Adds to a leaf's gradient, which is an array of its own: a user may change it in place."""
    if leaf.grad is not None:
        leaf.grad = leaf.grad + part
    elif isinstance(part, np.ndarray) and (part is shared or part.base is not None or not part.flags.writeable):
        leaf.grad = part.copy()
    else:
        leaf.grad = part


def _parents(node: Tensor) -> tuple[Tensor, ...]:
    if isinstance(node, Scalar):
        return tuple(parent for parent in (node.left, node.right) if parent is not None)
    assert isinstance(node, Array)
    return node.parents


def _reset(stack: list[Tensor], state: int) -> None:
    """After an error: tensors that wait for gradients are as before the pass (OPEN), or of no further use (SPENT)."""
    while stack:
        node = stack.pop()
        waiting = [parent for parent in _parents(node) if parent.uses > 0]
        if node.uses >= 0:
            node.uses = state
        for parent in waiting:
            parent.uses, parent.grad = state, None
        stack += waiting
