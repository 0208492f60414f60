"""One step of torch.optim from a given state, and the one optimiser that it does not have."""

from __future__ import annotations

from typing import Any

import torch

Tensor = torch.Tensor


def _stepped(
    optimizer: type[torch.optim.Optimizer], param: Tensor, grad: Tensor, state: dict[str, Any], **options: Any
) -> tuple[Tensor, ...]:
    """The parameters after one step, and the state in the order given. `step` says how many steps there were before."""
    leaf = param.clone().requires_grad_()
    leaf.grad = grad.clone()
    chosen = optimizer([leaf], **options)  # type: ignore[call-arg]
    held = {name: value.clone() if isinstance(value, Tensor) else value for name, value in state.items()}
    chosen.state[leaf].update(held)
    chosen.step()
    after = [chosen.state[leaf][name] for name in state if name != "step"]
    return (leaf.detach(), *after)


def _before(step: float) -> Tensor:
    """PyTorch counts the steps that are done."""
    return torch.tensor(float(step - 1))


def sgd(param: Tensor, grad: Tensor, **options: Any) -> Tensor:
    return _stepped(torch.optim.SGD, param, grad, {}, **options)[0]


def momentum(param: Tensor, grad: Tensor, buffer: Tensor, step: float, **options: Any) -> tuple[Tensor, ...]:
    """The first step has no buffer yet."""
    state = {"momentum_buffer": None if step == 1 else buffer}
    return _stepped(torch.optim.SGD, param, grad, state, **options)


def adagrad(param: Tensor, grad: Tensor, total: Tensor, step: float, **options: Any) -> tuple[Tensor, ...]:
    return _stepped(torch.optim.Adagrad, param, grad, {"step": _before(step), "sum": total}, **options)


def adadelta(param: Tensor, grad: Tensor, square: Tensor, delta: Tensor, **options: Any) -> tuple[Tensor, ...]:
    state = {"step": _before(1), "square_avg": square, "acc_delta": delta}
    return _stepped(torch.optim.Adadelta, param, grad, state, **options)


def rmsprop(param: Tensor, grad: Tensor, square: Tensor, **options: Any) -> tuple[Tensor, ...]:
    return _stepped(torch.optim.RMSprop, param, grad, {"step": _before(1), "square_avg": square}, **options)


def rmsprop_centered(
    param: Tensor, grad: Tensor, square: Tensor, mean: Tensor, buffer: Tensor, momentum: float, **options: Any
) -> tuple[Tensor, ...]:
    """Without momentum PyTorch keeps no buffer; ours then holds the last direction."""
    state = {"step": _before(1), "square_avg": square, "grad_avg": mean, "momentum_buffer": buffer}
    after = _stepped(torch.optim.RMSprop, param, grad, state, centered=True, momentum=momentum, **options)
    if momentum == 0:
        after = (*after[:3], (param - after[0]) / options["lr"])
    return after


def adam(
    optimizer: type[torch.optim.Optimizer],
    param: Tensor,
    grad: Tensor,
    m: Tensor,
    v: Tensor,
    step: float,
    **options: Any,
) -> tuple[Tensor, ...]:
    """Adam, AdamW and RAdam, whose options begin with the two betas."""
    betas = (options.pop("beta1"), options.pop("beta2"))
    state = {"step": _before(step), "exp_avg": m, "exp_avg_sq": v}
    return _stepped(optimizer, param, grad, state, betas=betas, **options)


def amsgrad(
    param: Tensor, grad: Tensor, m: Tensor, v: Tensor, largest: Tensor, step: float, **options: Any
) -> tuple[Tensor, ...]:
    betas = (options.pop("beta1"), options.pop("beta2"))
    state = {"step": _before(step), "exp_avg": m, "exp_avg_sq": v, "max_exp_avg_sq": largest}
    return _stepped(torch.optim.Adam, param, grad, state, betas=betas, amsgrad=True, **options)


def adamax(param: Tensor, grad: Tensor, m: Tensor, u: Tensor, step: float, **options: Any) -> tuple[Tensor, ...]:
    betas = (options.pop("beta1"), options.pop("beta2"))
    state = {"step": _before(step), "exp_avg": m, "exp_inf": u}
    return _stepped(torch.optim.Adamax, param, grad, state, betas=betas, **options)


def nadam(
    param: Tensor, grad: Tensor, m: Tensor, v: Tensor, mu_product: Tensor, step: float, **options: Any
) -> tuple[Tensor, ...]:
    betas = (options.pop("beta1"), options.pop("beta2"))
    state = {"step": _before(step), "exp_avg": m, "exp_avg_sq": v, "mu_product": mu_product}
    return _stepped(torch.optim.NAdam, param, grad, state, betas=betas, **options)


def lion(
    param: Tensor, grad: Tensor, m: Tensor, lr: float, beta1: float, beta2: float, weight_decay: float
) -> tuple[Tensor, ...]:
    direction = torch.lerp(grad, m, beta1).sign()
    return param - lr * (direction + weight_decay * param), torch.lerp(grad, m, beta2)


def adafactor(
    param: Tensor, grad: Tensor, row: Tensor, column: Tensor, step: float, eps1: float, eps2: float, **options: Any
) -> tuple[Tensor, ...]:
    state = {"step": _before(step), "row_var": row[:, None], "col_var": column[None, :]}
    after = _stepped(torch.optim.Adafactor, param, grad, state, eps=(eps1, eps2), **options)
    return after[0], after[1][:, 0], after[2][0]


def adafactor_vector(
    param: Tensor, grad: Tensor, v: Tensor, step: float, eps1: float, eps2: float, **options: Any
) -> tuple[Tensor, ...]:
    state = {"step": _before(step), "variance": v}
    return _stepped(torch.optim.Adafactor, param, grad, state, eps=(eps1, eps2), **options)


def clip_by_value(grad: Tensor, clip_value: float) -> Tensor:
    out = grad.clamp(-clip_value, clip_value)
    leaf = torch.zeros_like(grad).requires_grad_()
    leaf.grad = grad.detach().clone()
    torch.nn.utils.clip_grad_value_([leaf], clip_value)
    torch.testing.assert_close(out, leaf.grad)
    return out


def clip_by_norm(grad: Tensor, max_norm: float) -> Tensor:
    out = grad * (max_norm / (torch.linalg.vector_norm(grad) + 1e-6)).clamp(max=1)
    leaf = torch.zeros_like(grad).requires_grad_()
    leaf.grad = grad.detach().clone()
    torch.nn.utils.clip_grad_norm_([leaf], max_norm)
    torch.testing.assert_close(out, leaf.grad)
    return out
