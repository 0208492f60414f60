"""Optimisers, each one step of torch.optim from a given state, and the clipping of gradients.

An update has no derivative here: its old and its new value have one name.
"""

from __future__ import annotations

from ..table import Op

MOMENTS = "param, grad, m, v, step, lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay"
ADAM = (
    "3,4 step=3",
    "5 step=1 zero lr=0.1",
    "2,1,3 step=10 lr=0.1 beta1=0.5 beta2=0.9 eps=0.01 weight_decay=0.3",
    "- step=2 lr=0.5",
    "1,1 step=1000 lr=0.1 weight_decay=0.1",
    "0,3 step=2",
)


def case(state: str, text: str) -> str:
    """`3,4 step=2` with `m v+`: param and grad and the state of one shape (`-`: a scalar); `+` is a positive one.

    The word `zero` gives the state of a first step.
    """
    shape, *words = text.split()
    shape = shape.replace("-", "")
    kinds = {name.rstrip("+"): "+" * name.endswith("+") for name in state.split()}
    if "zero" in words:
        kinds = dict.fromkeys(kinds, "n0")
    tensors = [f"{name}:{shape}{kind}" for name, kind in {"param": "", "grad": "", **kinds}.items()]
    return " ".join([*tensors, *(word for word in words if word != "zero")])


def update(name: str, oracle: str, state: str, texts: tuple[str, ...], note: str = "") -> Op:
    """The row of an optimiser whose state has the shape of the parameters."""
    fixed = ("param", "grad", *state.replace("+", "").split())
    speed = case(state, texts[0].replace("3,4", "1024,1024"))
    cases = tuple(case(state, text) for text in texts)
    return Op(name, oracle, cases, smooth=False, fixed=fixed, note=note, speed=speed)  # an update has no derivative


ROWS = (
    update(
        "sgd",
        "R.sgd(param, grad, lr=lr, weight_decay=weight_decay)",
        "",
        ("3,4", "5 lr=0.5 weight_decay=0.1", "2,1,3 lr=0.1", "- lr=1.0", "1,1 lr=0.0 weight_decay=0.1", "0,3"),
    ),
    update(
        "momentum",
        "R.momentum(param, grad, buffer, step,"
        " lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay)",
        "buffer",
        (
            "3,4 step=2",
            "5 step=1 zero lr=0.5 dampening=0.5",
            "2,1,3 step=3 lr=0.1 momentum=0.5 dampening=0.25 weight_decay=0.1",
            "- step=2 lr=1.0",
            "1,1 step=1 momentum=0.99 weight_decay=0.1",
            "0,3 step=2",
        ),
    ),
    update(
        "nesterov",
        "R.momentum(param, grad, buffer, 2, nesterov=True, lr=lr, momentum=momentum, weight_decay=weight_decay)",
        "buffer",
        ("3,4", "5 zero lr=0.5", "2,1,3 lr=0.1 momentum=0.5 weight_decay=0.1", "- lr=1.0", "1,1 momentum=0.99", "0,3"),
    ),
    update(
        "adagrad",
        "R.adagrad(param, grad, total, step, lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay)",
        "total+",
        (
            "3,4 step=2",
            "5 step=1 zero lr=0.5",
            "2,1,3 step=4 lr=0.1 lr_decay=0.1 eps=0.01 weight_decay=0.1",
            "- step=3 lr_decay=0.5",
            "1,1 step=100 lr_decay=0.001",
            "0,3 step=2",
        ),
    ),
    update(
        "adadelta",
        "R.adadelta(param, grad, square, delta, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)",
        "square+ delta+",
        ("3,4", "5 zero lr=0.5", "2,1,3 lr=0.1 rho=0.5 eps=0.01 weight_decay=0.1", "- lr=2.0", "1,1 rho=0.99", "0,3"),
    ),
    update(
        "rmsprop",
        "R.rmsprop(param, grad, square, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay)",
        "square+",
        (
            "3,4",
            "5 zero lr=0.5",
            "2,1,3 lr=0.1 alpha=0.5 eps=0.01 weight_decay=0.1",
            "- lr=2.0",
            "1,1 alpha=0.9",
            "0,3",
        ),
    ),
    Op(
        "rmsprop_centered",
        "R.rmsprop_centered(param, grad, square, mean, buffer, momentum,"
        " lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay)",
        # the mean square is above the squared mean, as it is for any gradients
        (
            "param:2,3 grad:2,3 square:2,3+ mean:2,3n0.1 buffer:2,3 momentum=0.9",
            "param:5 grad:5 square:5n0 mean:5n0 buffer:5n0 lr=0.5",
            "param:1,3 grad:1,3 square:1,3+ mean:1,3n0.1 buffer:1,3n0 lr=0.1 alpha=0.5 eps=0.01 weight_decay=0.1",
            "param: grad: square:+ mean:n0.1 buffer: momentum=0.5 lr=2.0",
            "param:1,1 grad:1,1 square:1,1+ mean:1,1n0.1 buffer:1,1 alpha=0.9 momentum=0.99",
            "param:0,3 grad:0,3 square:0,3 mean:0,3 buffer:0,3 momentum=0.9",
        ),
        smooth=False,  # an update has no derivative
        fixed=("param", "grad", "square", "mean", "buffer"),
        speed="param:1024,1024 grad:1024,1024 square:1024,1024+ mean:1024,1024n0.1 buffer:1024,1024 momentum=0.9",
    ),
    update("adam", f"R.adam(torch.optim.Adam, {MOMENTS})", "m v+", ADAM),
    update("adamw", f"R.adam(torch.optim.AdamW, {MOMENTS})", "m v+", ADAM),
    update("amsgrad", f"R.amsgrad({MOMENTS.replace('v, ', 'v, largest, ')})", "m v+ largest+", ADAM),
    update("adamax", f"R.adamax({MOMENTS.replace('v, ', 'u, ')})", "m u+", ADAM),
    Op(
        "nadam",
        f"R.nadam({MOMENTS.replace('v, ', 'v, mu_product, ')}, momentum_decay=momentum_decay)",
        tuple(f"{case('m v+', text)} mu_product:p" for text in ADAM),
        smooth=False,  # an update has no derivative
        fixed=("param", "grad", "m", "v", "mu_product"),
        speed=f"{case('m v+', '1024,1024 step=3')} mu_product:p",
    ),
    update(
        "radam",
        f"R.adam(torch.optim.RAdam, {MOMENTS})",
        "m v+",
        ("3,4 step=6", "5 step=1 zero lr=0.1", "3 step=5 lr=0.1", *ADAM[2:]),
    ),
    update(
        "lion",
        "R.lion(param, grad, m, lr, beta1, beta2, weight_decay)",
        "m",
        (
            "3,4 lr=0.01",
            "5 zero lr=0.5",
            "2,1,3 lr=0.1 beta1=0.5 beta2=0.9 weight_decay=0.3",
            "- lr=2.0",
            "1,1 weight_decay=0.1",
            "0,3",
        ),
        note="torch.optim has no Lion",
    ),
    Op(
        "adafactor",
        "R.adafactor(param, grad, row, column, step, eps1, eps2,"
        " lr=lr, beta2_decay=beta2_decay, d=d, weight_decay=weight_decay)",
        (
            "param:3,4 grad:3,4 row:3+ column:4+ step=2",
            "param:2,5 grad:2,5 row:2n0 column:5n0 step=1 lr=0.5",
            "param:4,2 grad:4,2 row:4+ column:2+ step=9 lr=2.0 beta2_decay=-0.5 eps1=0.5 eps2=0.01 d=1.25",
            "param:1,1 grad:1,1 row:1+ column:1+ step=3 weight_decay=0.1",
            "param:3,2n0 grad:3,2 row:3+ column:2+ step=4",
            "param:2,3 grad:2,3n0 row:2n0 column:3n0 step=2",
        ),
        smooth=False,  # an update has no derivative
        fixed=("param", "grad", "row", "column"),
        speed="param:1024,1024 grad:1024,1024 row:1024+ column:1024+ step=2",
    ),
    Op(
        "adafactor_vector",
        "R.adafactor_vector(param, grad, v, step, eps1, eps2,"
        " lr=lr, beta2_decay=beta2_decay, d=d, weight_decay=weight_decay)",
        (
            "param:4 grad:4 v:4+ step=2",
            "param:5 grad:5 v:5n0 step=1 lr=0.5",
            "param:3 grad:3 v:3+ step=9 lr=2.0 beta2_decay=-0.5 eps1=0.5 eps2=0.01 d=1.25 weight_decay=0.1",
            "param:1 grad:1 v:1+ step=3 weight_decay=0.1",
            "param:3n0 grad:3 v:3+ step=4",
            "param:3 grad:3n0 v:3n0 step=2",
        ),
        smooth=False,  # an update has no derivative
        fixed=("param", "grad", "v"),
        speed="param:1000000 grad:1000000 v:1000000+ step=2",
    ),
    Op(
        "clip_by_value",
        "R.clip_by_value(grad, clip_value)",
        (
            "grad:3,4 clip_value=0.5",
            "grad=[-1.0,1.0,0.5,-2.0] clip_value=1.0",
            "grad:2,1,3 clip_value=0.1",
            "grad: clip_value=3.0",
            "grad:0,3 clip_value=1.0",
        ),
        speed="grad:1024,1024 clip_value=0.5",
    ),
    Op(
        "global_norm",
        "torch.linalg.vector_norm(grad)",
        ("grad:3,4", "grad:5", "grad:2,1,3", "grad:2,2n0", "grad:", "grad:0,3"),
        speed="grad:1024,1024",
    ),
    Op(
        "clip_by_norm",
        "R.clip_by_norm(grad, max_norm)",
        (
            "grad:3,4 max_norm=0.5",
            "grad:5 max_norm=100.0",
            "grad:2,1,3 max_norm=1.0",
            "grad: max_norm=0.01",
            "grad:2,2n0 max_norm=1.0",
            "grad:0,3 max_norm=1.0",
        ),
        speed="grad:1024,1024 max_norm=1.0",
    ),
    Op(
        "clip_by_global_norm",
        "grad * (max_norm / (torch.as_tensor(norm) + 1e-6)).clamp(max=1)",
        (
            "grad:3,4 norm:+ max_norm=0.1",
            "grad:5 norm=3.0 max_norm=1.0",
            "grad:2,1,3 norm=0.0 max_norm=1.0",
            "grad: norm:+ max_norm=0.01",
            "grad:0,3 norm=2.0 max_norm=1.0",
        ),
        speed="grad:1024,1024 norm=2.0 max_norm=1.0",
    ),
)
