"""ts.torch against PyTorch itself: its own checks of operators, torch.compile, torch.func, a model, wrong arguments."""

from __future__ import annotations

import copy
import io
import pickle
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tensorswap as ts
from tensorswap import errors

from .generate import Case, programs

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `make bridges` runs these tests")

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore:The .grad attribute of a Tensor that is not a leaf",  # which opcheck itself reads, from PyTorch 2.15 on
)

LINEAR = "Y[b,o] += tanh(X[b,i]) * W[o,i]"
Function = Callable[..., Any]


def drawn(*shape: int, grad: bool = True, dtype: Any = None) -> Any:
    generator = torch.Generator().manual_seed(sum(shape))
    made = torch.randn(*shape, generator=generator, dtype=dtype or torch.float64)
    return made.requires_grad_(grad)


X, W = drawn(3, 4), drawn(2, 4)
XS = torch.stack([X, 2 * X]).detach()


OWN = ts.torch(LINEAR)


def linear(x: Any, w: Any) -> Any:
    return OWN(X=x, W=w)


def plain(x: Any, w: Any) -> Any:
    return torch.tanh(x) @ w.T


def operator(x: Any, w: Any) -> Any:
    return OWN.op(x, w)


def compiled(f: Function, **settings: Any) -> Any:
    """In one graph, with the gradients traced too; without the compiler of kernels, which takes a minute to start."""
    torch.compiler.reset()
    return torch.compile(f, fullgraph=True, backend="aot_eager", **settings)


def check_equal(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


# -- PyTorch's own checks


PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "one output": (LINEAR, {"X": X, "W": W}),
    "several outputs": ("A[i] = sin(X[i])\nB[i] = X[i] * Z[i]", {"X": X[0], "Z": W[0]}),
    "an integer output": ("A[i] = sin(X[i])\nk argmax= X[i]", {"X": X[0]}),
    "a gather": ("Y[b,d] = E[tok[b],d] ** 2", {"E": X, "tok": torch.tensor([2, 0, 2])}),
    "a recurrence": (
        "for t:\n    H[t,i] = tanh(X[t,i] + (a * H[t-1,i] if t > 0 else 0.0))",
        {"X": X, "a": torch.tensor(0.5, dtype=torch.float64, requires_grad=True)},
    ),
    "an op of the library": ("softmax", {"input": X}),
    "another with what can be left out": ("layer_norm", {"input": X, "weight": W[0]}),
}


def arguments(f: Any, given: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(given.get(name) for name in f.program.inputs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_pass_opcheck(name: str) -> None:
    text, given = PROGRAMS[name]
    f = ts.torch(text)
    told = torch.library.opcheck(
        f.op, arguments(f, {n: t.detach().requires_grad_(t.requires_grad) for n, t in given.items()})
    )
    assert set(told.values()) == {"SUCCESS"}


def test_derived_operators_pass_opcheck() -> None:
    f = ts.torch(LINEAR)
    tensors = [X, W, drawn(3, 2)]
    told = torch.library.opcheck(f.operators.derived, (tensors, ["X", "W", "Y.grad"], "adjoint:X,W:Y", None))
    assert set(told.values()) == {"SUCCESS"}


def test_operators_with_numbers_pass_opcheck() -> None:
    f = ts.torch("Y[i] = a * X[i] + b")
    tensors = {"X": X[0].detach().requires_grad_(), "a": torch.tensor(2.0, dtype=torch.float64)}
    told = torch.library.opcheck(f.op, (*arguments(f, tensors), ["b"], [0.5]))
    assert set(told.values()) == {"SUCCESS"}


@pytest.mark.parametrize("way", ["function", "operator"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_pass_gradcheck_twice(name: str, way: str) -> None:
    text, given = PROGRAMS[name]
    f = ts.torch(text)
    names = [n for n, tensor in given.items() if tensor.requires_grad]

    def call(*tensors: Any) -> Any:
        now = {**given, **dict(zip(names, tensors, strict=True))}
        made = f(now) if way == "function" else f.op(*arguments(f, now))
        several = made.values() if isinstance(made, dict) else made if isinstance(made, tuple) else [made]
        return tuple(each for each in several if each.is_floating_point())

    point = [given[n].detach().requires_grad_() for n in names]
    assert torch.autograd.gradcheck(call, point)
    assert torch.autograd.gradgradcheck(call, point)


@settings(max_examples=12, deadline=None, database=None)
@given(programs)
def test_generated_programs(case: Case) -> None:
    """Values, gradients and batches through PyTorch are those of the program itself, in eager code and as operators."""
    program = ts.program(case.text)
    f = ts.torch(program)
    tensors = {n: torch.from_numpy(np.array(a)).requires_grad_(n in case.wrt) for n, a in case.arrays.items()}
    expected = program.run_reference(case.arrays)
    named = expected if isinstance(expected, dict) else {program.outputs[0]: expected}
    raw = f.op(*arguments(f, tensors))
    several = dict(zip(program.outputs, raw if isinstance(raw, tuple) else (raw,), strict=True))
    made = f(tensors)
    for results in (several, made if isinstance(made, dict) else {program.outputs[0]: made}):
        for name, tensor in results.items():
            np.testing.assert_array_equal(tensor.detach().numpy(), named[name])
        smooth = {name: tensor for name, tensor in results.items() if tensor.requires_grad}
        if not smooth:
            continue
        seeds = {n: torch.cos(torch.arange(t.numel(), dtype=t.dtype)).reshape(t.shape) for n, t in smooth.items()}
        found = torch.autograd.grad(
            list(smooth.values()), [tensors[n] for n in case.wrt], list(seeds.values()), allow_unused=True
        )
        adjoint = program.adjoint(wrt=case.wrt, of=list(seeds))
        own = adjoint.run_reference({**case.arrays, **{f"{n}.grad": seed.numpy() for n, seed in seeds.items()}})
        gradients = own if isinstance(own, dict) else {adjoint.outputs[0]: own}
        for name, gradient in zip(case.wrt, found, strict=True):
            wanted = gradients[f"{name}.grad"]
            given = np.zeros_like(wanted) if gradient is None else gradient.numpy()
            np.testing.assert_allclose(given, wanted, rtol=1e-9, atol=1e-9)
    if case.wrt:
        both = {n: torch.stack([tensors[n].detach()] * 2) for n in case.wrt}
        rest = {n: tensor for n, tensor in tensors.items() if n not in case.wrt}
        batched = torch.func.vmap(lambda at: f({**rest, **at}))(both)
        for name, tensor in (batched if isinstance(batched, dict) else {program.outputs[0]: batched}).items():
            np.testing.assert_allclose(tensor[1].numpy(), named[name], rtol=1e-9, atol=1e-12)


# -- torch.func


def loss(f: Function) -> Function:
    return lambda x: torch.sin(f(x, W.detach())).sum()


TRANSFORMATIONS: dict[str, Callable[[Function], Any]] = {
    "grad": lambda f: torch.func.grad(loss(f))(X),
    "vmap": lambda f: torch.func.vmap(f, (0, None))(XS, W),
    "vmap over another axis": lambda f: torch.func.vmap(f, (None, 1), 1)(X, torch.stack([W, -W], 1)),
    "vmap of vmap": lambda f: torch.func.vmap(torch.func.vmap(f, (0, None)), (None, 0))(XS, torch.stack([W, -W])),
    "vmap of grad": lambda f: torch.func.vmap(torch.func.grad(loss(f)))(XS),
    "grad of vmap": lambda f: torch.func.grad(lambda xs: torch.func.vmap(f, (0, None))(xs, W).sin().sum())(XS),
    "grad of grad": lambda f: torch.func.grad(lambda x: torch.func.grad(loss(f))(x).sin().sum())(X),
    "jvp": lambda f: torch.func.jvp(lambda x: f(x, W), (X,), (2 * X,)),
    "jacrev": lambda f: torch.func.jacrev(lambda x: f(x, W))(X),
    "jacfwd": lambda f: torch.func.jacfwd(lambda x: f(x, W))(X),
    "hessian": lambda f: torch.func.hessian(loss(f))(X),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations_are_those_of_torch(name: str) -> None:
    check_equal(TRANSFORMATIONS[name](linear), TRANSFORMATIONS[name](plain))


@pytest.mark.parametrize("name", [name for name in TRANSFORMATIONS if "vmap" in name and "grad" not in name])
def test_batches_of_operators(name: str) -> None:
    check_equal(TRANSFORMATIONS[name](operator), TRANSFORMATIONS[name](plain))
    check_equal(compiled(lambda: TRANSFORMATIONS[name](linear))(), TRANSFORMATIONS[name](plain))


def test_forward_mode_of_autograd() -> None:
    forward_mode = torch.autograd.forward_ad
    with forward_mode.dual_level():
        x = forward_mode.make_dual(X.detach(), W.detach().sum() * X.detach())
        check_equal(forward_mode.unpack_dual(linear(x, W)).tangent, forward_mode.unpack_dual(plain(x, W)).tangent)


def test_forward_mode_through_an_operator_is_refused() -> None:
    """torch.library has no rule for it, and would give zeros."""
    with pytest.raises(ts.SwapError, match="forward mode cannot pass through it"):
        torch.func.jvp(lambda x: operator(x, W), (X,), (X,))


def test_vmap_of_an_op_with_any_leading_axes() -> None:
    f, x = ts.torch("softmax"), drawn(2, 3, 4)
    check_equal(torch.func.vmap(lambda x: f(input=x))(x), x.softmax(-1))
    check_equal(
        torch.func.vmap(torch.func.grad(lambda x: f(input=x).sin().sum()))(x),
        torch.func.vmap(torch.func.grad(lambda x: x.softmax(-1).sin().sum()))(x),
    )


# -- torch.compile


def test_one_graph_serves_all_sizes() -> None:
    from torch._dynamo.testing import CompileCounterWithBackend

    torch.compiler.reset()
    counter = CompileCounterWithBackend("aot_eager")
    f = torch.compile(lambda x, w: linear(x, w).sin(), fullgraph=True, dynamic=True, backend=counter)
    for rows, columns in ((4, 5), (7, 5), (6, 9)):
        x, w = drawn(rows, columns), drawn(3, columns)
        found, expected = f(x, w), plain(x, w).sin()
        check_equal(found, expected)
        check_equal(torch.autograd.grad(found.sum(), (x, w)), torch.autograd.grad(expected.sum(), (x, w)))
    assert counter.frame_count == 1


def test_options_in_a_graph() -> None:
    f, kernel = ts.torch("conv2d"), drawn(4, 3, 3, 3)
    g = compiled(lambda x, s: f(input=x, weight=kernel, bias=None, stride=s, padding=(1, 0)), dynamic=True)
    for rows, stride in ((8, 1), (9, 2), (10, 2)):
        x = drawn(2, 3, rows, rows + 1, grad=False)
        expected = torch.nn.functional.conv2d(x, kernel, stride=stride, padding=(1, 0))
        found = g(x, stride)
        check_equal(found, expected)
        check_equal(torch.autograd.grad(found.sin().sum(), kernel), torch.autograd.grad(expected.sin().sum(), kernel))


def test_numbers_in_a_graph() -> None:
    f, x = ts.torch("Y[i] = a * X[i] + b"), drawn(4, dtype=torch.float32)
    g = compiled(lambda x, a, b: f(X=x, a=a, b=b))
    for a, b in ((torch.tensor(2.0), 0.5), (torch.tensor(2.0), 1.5), (3, 2)):
        torch.testing.assert_close(g(x, a, b), a * x + b)
    outer = ts.torch("Y[i,j] = X[i] * j")
    sized = compiled(lambda x, n: outer(X=x, j=n), dynamic=True)
    assert [tuple(sized(x, n).shape) for n in (3, 5)] == [(4, 3), (4, 5)]


def test_several_outputs_in_a_graph() -> None:
    f = ts.torch("A[i] = sin(X[i])\nB[i] = X[i] * Z[i]\nk argmax= X[i]")
    x, z = X[0].detach().requires_grad_(), W[0].detach().requires_grad_()
    made = compiled(lambda x, z: f(X=x, Z=z))(x, z)
    check_equal({name: tensor.detach() for name, tensor in made.items()},
                {"A": x.sin().detach(), "B": (x * z).detach(), "k": x.argmax()})  # fmt: skip
    assert not made["k"].requires_grad
    check_equal(torch.autograd.grad(made["A"].sum(), (x, z), allow_unused=True)[0], x.cos().detach())


def test_an_exported_graph_runs() -> None:
    layer = ts.torch.Module(LINEAR, params={"W": W})
    sizes = (({0: torch.export.Dim("rows")},),)
    exported = torch.export.export(layer, (drawn(4, 4, grad=False),), dynamic_shapes=sizes)
    x = drawn(6, 4, grad=False)
    check_equal(exported.module()(x), plain(x, layer.W))


def test_modes_see_the_operator() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Mode():
        linear(X, W).sum().backward(inputs=[X])
    X.grad = None
    name = ts.torch(LINEAR).op._name
    assert [f"tensorswap.{name}{end}.default" in seen for end in ("", "_derived")] == [True, True]


def test_meta_tensors_have_shapes() -> None:
    made = linear(X.to("meta"), W.to("meta"))
    assert (made.device.type, tuple(made.shape), made.dtype) == ("meta", (3, 2), torch.float64)


# -- tensors and memory


def test_nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorswap.program import Program

    seen: dict[str, Any] = {}

    def spy(self: Program, given: dict[str, Any]) -> Any:
        seen.update(given)
        seen["made"] = Program.run_reference(self, given)
        return seen["made"]

    monkeypatch.setattr(Program, "__call__", spy)
    x = drawn(4, 3).T
    made = linear(x, W[:, :4])
    assert seen["X"].ctypes.data == x.data_ptr()
    assert seen["X"].strides == tuple(8 * n for n in x.stride())
    assert made.data_ptr() == seen["made"].ctypes.data


def test_views_and_broadcasts() -> None:
    wide = drawn(1, 4).detach().requires_grad_()
    for x in (drawn(4, 3).T, wide.expand(3, 4), drawn(6, 8)[::2, 1::2]):
        check_equal(linear(x, W).detach(), plain(x, W).detach())
    (found,) = torch.autograd.grad(linear(wide.expand(3, 4), W).sum(), wide)
    (expected,) = torch.autograd.grad(plain(wide.expand(3, 4), W).sum(), wide)
    check_equal(found, expected)
    negated = torch.randn(3, 4, dtype=torch.complex128).conj().imag
    assert negated.is_neg()
    check_equal(linear(negated, W).detach(), plain(negated, W).detach())


def test_types_are_kept() -> None:
    x, w = X.detach().float().requires_grad_(), W.detach().clone().requires_grad_()
    assert linear(x, w.float()).dtype == torch.float32
    made = linear(x, w)
    assert made.dtype == torch.float64
    assert [g.dtype for g in torch.autograd.grad(made.sum(), (x, w))] == [torch.float32, torch.float64]
    f = ts.torch("Y[i] = a * X[i]")
    assert f(X=x[0], a=2).dtype == torch.float32
    assert f(X=torch.tensor([1, 2]), a=2).dtype == torch.int64
    assert f(X=torch.tensor([1, 2]), a=2.5).dtype == torch.float64
    assert f(X=x[0], a=np.float64(2)).dtype == torch.float32


def test_only_what_the_way_back_reads_is_kept() -> None:
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        ts.torch("Y[i] = 2 * X[i] + Z[i]")(X=X[0], Z=W[0])
    assert kept == []


def test_empty_tensors() -> None:
    made = linear(drawn(0, 4), W)
    assert made.shape == (0, 2)
    check_equal(torch.autograd.grad(made.sum(), W)[0], torch.zeros_like(W))


def test_without_a_gradient() -> None:
    with torch.no_grad():
        assert not linear(X, W).requires_grad
    with torch.inference_mode():
        check_equal(linear(X, W), plain(X, W))
    step = ts.torch("Y[i] = floor(X[i])")
    assert torch.autograd.grad(step(X=X[0]).sum() + X.sum(), X)[0].equal(torch.ones_like(X))


def test_checkpoints_run_it_again() -> None:
    from torch.utils.checkpoint import checkpoint

    made = checkpoint(lambda x: linear(x, W).sin(), X, use_reentrant=False)
    check_equal(torch.autograd.grad(made.sum(), X)[0], torch.autograd.grad(plain(X, W).sin().sum(), X)[0])


# -- a model


def trained(layer: Any, way: Callable[[Any], Any] = lambda f: f) -> list[float]:
    torch.manual_seed(0)
    x, y = torch.randn(32, 4, dtype=torch.float64), torch.randn(32, dtype=torch.float64)
    model = torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(6, 1, dtype=torch.float64))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    step, losses = way(lambda: ((model(x)[:, 0] - y) ** 2).mean()), []
    for _ in range(8):
        optimizer.zero_grad()
        value = step()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


class Plain(torch.nn.Module):
    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.W = torch.nn.Parameter(weight)

    def forward(self, x: Any) -> Any:
        return plain(x, self.W)


@pytest.mark.compiled
@pytest.mark.parametrize("way", ["eager", "aot_eager", "inductor"])
def test_a_model_trains_to_the_same_losses(way: str) -> None:
    if way == "inductor" and shutil.which("g++") is None:
        pytest.skip("torch.compile's own kernels need a C++ compiler")
    torch.compiler.reset()
    weight = drawn(6, 4, grad=False)
    turn = (lambda f: f) if way == "eager" else lambda f: torch.compile(f, fullgraph=True, backend=way)
    own = trained(ts.torch.Module(LINEAR, params={"W": weight}), turn)
    np.testing.assert_allclose(own, trained(Plain(weight.clone())), rtol=1e-9)
    assert own[-1] < 0.95 * own[0]


def test_a_module_is_one_of_pytorch_s() -> None:
    torch.manual_seed(0)
    layer = ts.torch.Module(LINEAR, params={"W": (2, 4)}, dtype=torch.float64)
    assert [name for name, _ in layer.named_parameters()] == list(layer.state_dict()) == ["W"]
    assert 0.1 < layer.W.abs().max() < 0.5  # 1 / sqrt(4), as nn.Linear has it
    torch.manual_seed(0)
    assert ts.torch.Module(LINEAR, params={"W": (2, 4)}, dtype=torch.float64).W.equal(layer.W)
    x = X.detach()
    check_equal(layer(x), plain(x, layer.W))
    check_equal(layer(X=x), plain(x, layer.W))
    kept = io.BytesIO()
    torch.save(layer.state_dict(), kept)
    other = ts.torch.Module(LINEAR, params={"W": (2, 4)}, dtype=torch.float64)
    other.load_state_dict(torch.load(io.BytesIO(kept.getvalue()), weights_only=True))
    for copied in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        check_equal(copied(x), layer(x))
        assert copied.W.data_ptr() != layer.W.data_ptr()
    assert layer.to(torch.float32)(x.float()).dtype == torch.float32
    assert "W: (2, 4)" in repr(layer)
    assert "tanh" in repr(layer)


def test_others_may_take_a_module_s_parameters_over() -> None:
    from torch.nn.utils import prune

    layer, x = ts.torch.Module(LINEAR, params={"W": W}), X.detach()
    check_equal(torch.func.functional_call(layer, {"W": 2 * W.detach()}, (x,)), plain(x, 2 * W.detach()))
    other = torch.nn.utils.parametrizations.weight_norm(copy.deepcopy(layer), "W")
    check_equal(other(x), plain(x, layer.W))
    assert "W" not in other._parameters
    prune.l1_unstructured(layer, "W", amount=0.5)
    assert (layer.W == 0).sum() == 4
    check_equal(layer(x), plain(x, layer.W))
    assert "W: (2, 4)" in repr(layer)


def test_a_module_with_options_and_all_ways_to_start() -> None:
    layer = ts.torch.Module("conv2d", params={"weight": ("he", (4, 3, 3, 3)), "bias": (4,)}, stride=2, padding=1)
    x = drawn(2, 3, 8, 8, grad=False, dtype=torch.float32)
    assert not layer.bias.any()
    expected = torch.nn.functional.conv2d(x, layer.weight, layer.bias, stride=2, padding=1)
    torch.testing.assert_close(layer(x), expected)
    assert ts.torch.Module("Y[i] = a[i] * X[i]", params={"a": ("ones", (4,))}).a.eq(1).all()
    given = np.arange(4.0, dtype=np.float32)
    module = ts.torch.Module("Y[i] = a[i] * X[i]", params={"a": given})
    given[:] = 7
    assert module.a.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ts.torch.Module(LINEAR, params={"V": (2, 4)}), "no input 'V'"),
        (lambda: ts.torch.Module(LINEAR, params=[(2, 4)]), "params is a dict"),
        (lambda: ts.torch.Module(LINEAR, params={"W": (2,)}), "has 1 axes, the program reads 2"),
        (lambda: ts.torch.Module(LINEAR, params={"W": (2, -4)}), "axis 1 of W"),
        (lambda: ts.torch.Module(LINEAR, params={"W": torch.ones(2, 4, dtype=torch.int64)}), "dtype torch.int64"),
        (lambda: ts.torch.Module(LINEAR, params={"W": (2, 4)}, dtype=torch.float16), "cannot be of dtype"),
        (lambda: ts.torch.Module("Y[i] = forward[i] * X[i]", params={"forward": (2,)}), "has a forward of its own"),
        (lambda: ts.torch.Module("Y[i] = names[i] * X[i]", params={"names": (2,)}), "has a names of its own"),
        (lambda: ts.torch.Module(LINEAR, params={"W": (2, 4)})(X, X), "is given 2 tensors"),
        (lambda: ts.torch.Module(LINEAR, params={"W": (2, 4)})(X, W=X), "W is given twice"),
        (lambda: ts.torch.Module(LINEAR, params={"W": (2, 4)})(X, X=X), "X is given twice"),
    ],
)
def test_wrong_modules(make: Callable[[], Any], told: str) -> None:
    with pytest.raises(ts.SwapError, match=told):
        make()


# -- what users do wrong


@pytest.mark.parametrize(
    ("given", "told", "kind"),
    [
        ({"X": X, "W": W[:, :3]}, "index i has size 4 on X .axis 1. but 3 on W", errors.ShapeError),
        ({"X": X}, "the input W is missing", errors.ArgumentError),
        ({"X": X, "W": None}, "the input W is missing", errors.ArgumentError),
        ({"X": X, "W": W, "V": W}, "no input 'V'", errors.ArgumentError),
        ({"X": X, "W": W, "V": "text"}, "no input 'V'", errors.ArgumentError),
        ({"X": X[0], "W": W}, "needs an array with 2 axes", errors.ShapeError),
        ({"X": 3, "W": W}, "needs an array with 2 axes", errors.ShapeError),
        ({"X": X.bfloat16(), "W": W}, "dtype torch.bfloat16.*\n.*X.float", errors.DtypeError),
        ({"X": X.half(), "W": W}, "dtype float16.*\n.*X.float", errors.DtypeError),
        ({"X": X + 1j, "W": W}, "X.real and X.imag", errors.DtypeError),
        ({"X": X.detach().to_sparse(), "W": W}, "X is not a dense tensor", errors.ArgumentError),
        ({"X": X.detach().numpy(), "W": W}, "torch.from_numpy.X.", errors.DtypeError),
        ({"X": [[1.0]], "W": W}, "torch.tensor.X.", errors.DtypeError),
        ({"X": X, "W": W, "i": torch.tensor(4)}, "i is a whole number, not a tensor", errors.DtypeError),
        ({"X": X.to("meta"), "W": W}, "X cannot be read as an array", errors.ArgumentError),
    ],
)
def test_wrong_arguments(given: dict[str, Any], told: str, kind: type[ts.SwapError]) -> None:
    with pytest.raises(kind, match=told):
        ts.torch(LINEAR)(given)


def test_a_tensor_on_another_device_is_refused() -> None:
    class Elsewhere:
        """What is asked of a tensor, as one on a GPU answers."""

        layout, is_nested, is_meta, device = torch.strided, False, False, torch.device("cuda:0")

    from tensorswap.bridges.pytorch.tensors import check

    with pytest.raises(errors.ArgumentError, match=r"X is on the device cuda:0.*\n.*X.cpu()"):
        check("X", Elsewhere())


def test_wrong_arguments_in_a_graph() -> None:
    with pytest.raises(Exception, match="index i has size 4 on X"):
        compiled(lambda: linear(X, W[:, :3]))()
    with pytest.raises(Exception, match=r"dtype torch\.bfloat16"):
        compiled(lambda: linear(X.bfloat16(), W))()


def test_indices_out_of_bounds_and_of_the_wrong_type() -> None:
    f = ts.torch("Y[b,d] = E[tok[b],d]")
    with pytest.raises(errors.BoundsError, match="asks for position 9 of axis 0"):
        f(E=X, tok=torch.tensor([1, 9]))
    with pytest.raises(errors.DtypeError, match=r"tok is used as an integer.*(\n.*)+tok.long\(\)"):
        f(E=X, tok=torch.tensor([1.0]))


def test_what_has_no_derivative_says_so() -> None:
    made = ts.torch("W[i] = W[i] - lr * g[i]")(W=W[0], g=X[0], lr=0.1)
    with pytest.raises(errors.DerivativeError, match="updated in place"):
        made.sum().backward()


def test_the_bridge_takes_programs_texts_and_names() -> None:
    program = ts.program(LINEAR)
    assert ts.torch(program).op is ts.torch(LINEAR).op
    assert ts.torch("softmax")(input=X).shape == X.shape
    with pytest.raises(ts.SwapError, match="takes a program, its text or the name of an op, not int"):
        ts.torch(3)
    assert "Y[b,o] +=" in repr(ts.torch(LINEAR))


# -- threads and copies


@pytest.mark.compiled
def test_threads_share_it() -> None:
    def work(number: int) -> tuple[Any, Any]:
        x = (X.detach() * number).requires_grad_()
        made = linear(x, W.detach())
        return made.detach(), torch.autograd.grad(made.sum(), x)[0]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(64)))
    for number, (made, gradient) in enumerate(results):
        x = (X.detach() * number).requires_grad_()
        check_equal(made, plain(x, W).detach())
        check_equal(gradient, torch.autograd.grad(plain(x, W.detach()).sum(), x)[0])


def test_threads_that_make_the_same_operator_get_one() -> None:
    text, made = "Y[i] = X[i] * 3 + cos(X[i])", []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait()
        made.append(ts.torch(text).op)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len({id(op) for op in made}) == 1


def test_functions_are_copied_and_pickled() -> None:
    f = ts.torch(LINEAR)
    for other in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        check_equal(other(X=X, W=W).detach(), plain(X, W).detach())


@pytest.mark.filterwarnings("ignore:os.fork")  # which JAX warns of if another test has loaded it
@pytest.mark.compiled
def test_a_data_loader_calls_it_in_its_workers() -> None:
    class Data(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, k: int) -> Any:
            return linear(X.detach() * k, W.detach())

    linear(X.detach(), W.detach())  # so that the workers inherit what has run
    loader: Sequence[Any] = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1)
    found = torch.cat(list(loader))
    check_equal(found, torch.stack([plain(X.detach() * k, W.detach()) for k in range(4)]))


@pytest.mark.parametrize(
    "text", ["W[i] = W[i] - sin(W[i]) * g[i]", "W[i] = W[i] - sin(W[i]) * g[i]\nY[i] = W[i]\nreturn Y"]
)
def test_vmap_of_an_update_starts_all_of_the_batch_from_one_value(text: str) -> None:
    update, W, g = ts.torch(text), drawn(4, grad=False), drawn(3, 4, grad=False)
    for axis in (0, 1):
        made = torch.func.vmap(lambda g: update(W=W, g=g), axis)(g.movedim(0, axis))
        assert torch.allclose(made, W - W.sin() * g)


@pytest.mark.parametrize("start", [2, 2.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vmap_of_an_update_of_a_plain_number(start: float, dtype: Any) -> None:
    """Which has the type that it has without a batch."""
    update, y = ts.torch("s = 0.5 * s + y\nn = n + 1"), torch.arange(3, dtype=dtype)
    batched = torch.func.vmap(lambda y: update(s=start, y=y, n=4))
    alone = update(s=start, y=y[1], n=4)
    for made in (batched(y), torch.compile(batched, fullgraph=True)(y)):
        assert torch.allclose(made["s"], (0.5 * start + y).to(alone["s"].dtype))
        assert made["s"].dtype == alone["s"].dtype
        assert (made["n"].tolist(), made["n"].dtype) == ([5, 5, 5], alone["n"].dtype)


def test_a_batch_of_autograds_own_is_refused_with_the_way_around() -> None:
    sine, x = ts.torch("Y[i] = sin(X[i])"), drawn(4)
    with pytest.raises(errors.ArgumentError, match=r"Y.grad is a batch of torch.autograd's own(.|\n)*jacrev"):
        torch.autograd.grad(sine(X=x), x, torch.eye(4, dtype=torch.float64), is_grads_batched=True)


def test_a_parameter_of_a_module_has_no_dot_in_its_name() -> None:
    adjoint = ts.program("Y[i] = a[i] * X[i]").adjoint(wrt=["X"])
    with pytest.raises(errors.ArgumentError, match=r"Y.grad can be no parameter"):
        ts.torch.Module(adjoint, params={"Y.grad": (3,)})
    layer = ts.torch.Module(adjoint, params={"a": torch.ones(3)})
    assert torch.equal(layer(torch.ones(3)), torch.ones(3))


ONE_OF_TWO = "h[b,o] += X[b,i] * W[o,i]\nreg += W[o,i] ** 2 / 2\nreturn h, reg"


def test_a_gradient_of_one_of_several_outputs() -> None:
    """Its sizes come from inputs that the gradient of all outputs need not read."""
    W = torch.arange(6.0).reshape(3, 2).requires_grad_()
    ts.torch(ONE_OF_TWO)(X=torch.ones(4, 2), W=W)["reg"].backward()
    torch.testing.assert_close(W.grad, W.detach())
    V = torch.ones(3, requires_grad=True)
    ts.torch("b[i] = 2 * V[i]\nc += b[i]\nreturn b, c")(V=V)["c"].backward()
    torch.testing.assert_close(V.grad, torch.full((3,), 2.0))


@pytest.mark.parametrize("text", ["Y[i] = floor(X[i])", "Y[i] = stop(X[i])", "Y[i] = X[i] * 0 + 3"])
def test_a_tangent_that_is_zero(text: str) -> None:
    program, x = ts.torch(text), torch.tensor([0.3, -1.2, 2.5])
    value, tangent = torch.func.jvp(lambda x: program(X=x), (x,), (torch.ones(3),))
    torch.testing.assert_close(value, program(X=x))
    torch.testing.assert_close(tangent, torch.zeros(3))
    torch.testing.assert_close(torch.func.jacfwd(lambda x: program(X=x))(x), torch.zeros(3, 3))


def test_a_tangent_beside_outputs_that_have_none() -> None:
    program, x = (
        ts.torch("Y[i] = X[i] ** 2\nM[i] = X[i] > 0\nn += 1 if X[i] > 0\nreturn Y, M, n"),
        torch.tensor([0.3, -2.0]),
    )
    _, tangent = torch.func.jvp(lambda x: program(X=x)["Y"], (x,), (torch.ones(2),))
    torch.testing.assert_close(tangent, 2 * x)
    torch.testing.assert_close(torch.func.hessian(lambda x: program(X=x)["Y"].sum())(x), 2 * torch.eye(2))


def test_a_batch_of_gradients_by_a_name_that_batches_take() -> None:
    program = ts.torch("loss += n[i] * X[i] ** 2")
    given = {"n": torch.tensor([1.0, 2.0]), "X": torch.ones(3, 2)}
    found = torch.func.vmap(torch.func.grad(lambda x: program(n=given["n"], X=x)))(given["X"])
    torch.testing.assert_close(found, 2 * given["n"] * given["X"])
