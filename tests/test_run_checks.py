"""What only values can show, kernels look at: compiled where it is right, refused in the interpreter's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

pytestmark = pytest.mark.compiled
Arrays = dict[str, Any]
R = np.random.default_rng(5)
GRID = R.random((20, 30))
TREE = "for n:\n    A[n] = X[n] + (A[left[n]] * A[right[n]] if n > 1 else 0)"
PARENTS = "for b:\n    A[b] = (A[par[b]] + 1 if par[b] >= 0 else x[b])"
GUARDED = "for n:\n    A[n] = X[n]\n    B[n] = A[k[n]] if A[k[n]] > 0\nreturn B"  # too early, A[k[n]] is still 0
SCATTER = "size(Y, 0) = 3\nY[g[i]] = X[i]"
GOOD: dict[str, tuple[str, list[str], Arrays]] = {
    "winners": ("a[i] argmax= X[i,j]\nY[i] = X[i,a[i]]", ["X"], {"X": GRID}),
    "winners of some": ("a[i] argmax= X[i,j] if X[i,j] > 0.5\nY[i] = X[i,a[i]]", ["X"], {"X": GRID}),
    "copied indices": ("c[n] = g[n]\nY[n] = X[c[n]]", ["X"], {"X": R.random(10), "g": R.integers(0, 10, 5)}),
    "back pointers": (
        "for t down:\n    path[t,b] = bp[t,b,path[t+1,b]] if t < 5 else start[b]\nY[t,b] = X[path[t,b]]", ["X"],
        {"start": np.array([1, 2]), "bp": R.integers(0, 3, (6, 2, 3)), "X": R.random(3)},
    ),
    "experts": (
        "e[n] argmax= G[n,k]\nY[n,o] += X[n,i] * W[e[n],i,o]", ["X", "W"],
        {"X": R.random((10, 4)), "G": R.random((10, 3)), "W": R.random((3, 4, 5))},
    ),
    "a tree": (TREE, ["X"], {"X": R.random(4), "left": np.array([-1, 0, 1, 1]), "right": np.array([-1, 0, 0, 2])}),
    "parents": (PARENTS, ["x"], {"x": R.random(5), "par": np.array([-1, 0, 1, 1, 3])}),
    "scatter": (SCATTER, ["X"], {"X": R.random(2), "g": np.array([0, 2])}),
    "two scatters": (
        "size(Y, 0) = 4\nY[g[i]] = X[i]\nY[h[i]] = -X[i]", ["X"],
        {"X": R.random(2), "g": np.array([0, 2]), "h": np.array([1, 3])},
    ),
    "even and odd": ("Y[2*f] = X[f]\nY[2*f+1] = -X[f]", ["X"], {"X": R.random(5)}),
    "a row of each": ("W[k[b],d] = W[k[b],d] - g[b,d]", [],
                      {"W": R.random((3, 4)), "k": np.array([0, 2]), "g": R.random((2, 4))}),
    "steps that update again": ("def f(W[n], k[t,b]) -> W[n]:\n    for t:\n        W[k[t,b]] = 2 * W[k[t,b]]", [],
                                {"W": R.random(3), "k": np.array([[0, 2], [2, 1]])}),
    "quotients": ("size(k) = 8\nY[q,k] = X[k//s[q]]", ["X"], {"X": R.random(8), "s": np.array([1, 2, 4])}),
    "divisors": ("Y[i] = X[i] // k[i] + X[i] % k[i]", [], {"X": np.array([5, -7, 7]), "k": np.array([2, -3, 3])}),
    "guarded divisors": ("Y[i] = X[i] // k[i] if k[i] != 0", [], {"X": np.array([5, -7]), "k": np.array([2, 0])}),
    "guarded gather": ("Y[b] = x[par[b]] if par[b] >= 0", ["x"], {"x": R.random(3), "par": np.array([-1, 2])}),
    "first or before": ("Y[l] = X[l] if l == 0 else X[l-1]", ["X"], {"X": R.random(6), "l": 6}),
    "a path that the program gives": ("z[0] = 1\nfor s:\n    z[s+1] = a[s,z[s]+1]", [],
                                      {"a": np.array([[0, 0, 1, 4]] * 3)}),
    "a part of the rows": ("size(Y, 0) = 3\nY[i] += X[i,j] if not i >= 3", ["X"], {"X": GRID}),
    "winners of a part": ("size(Y, 0) = 3\nY[i] argmax= X[i,j] if not i >= 3", [], {"X": GRID}),
    "packed": ("size(i) = 4\nsize(j) = 4\nY[i,j] = l[j*(2*size(i)-j-1)//2+i-j-1] if j < i", ["l"], {"l": R.random(6)}),
}  # fmt: skip
BAD: list[tuple[str, Arrays]] = [
    ("a[i] argmax= X[i,j] if X[i,j] > 0.9\nY[i] = X[i,a[i]]", {"X": GRID[:, :3]}),
    (SCATTER, {"X": np.ones(2), "g": np.array([2, 2])}),
    (SCATTER, {"X": np.ones(2), "g": np.array([2, 3])}),
    (
        "size(Y, 0) = 4\nY[g[i]] = X[i]\nY[h[i]] = -X[i]",
        {"X": np.ones(2), "g": np.array([0, 2]), "h": np.array([2, 3])},
    ),
    ("W[k[b]] = W[k[b]] - g[b]", {"W": np.ones(3), "k": np.array([1, 1]), "g": np.ones(2)}),
    ("Y[i] = X[i] // k[i]", {"X": np.array([5, 7]), "k": np.array([2, 0])}),
    ("Y[i] = X[i] % k[i]", {"X": np.array([5, 7]), "k": np.array([0, 1])}),
    ("Y[b] = x[par[b]] if par[b] >= 0", {"x": np.ones(3), "par": np.array([-1, 7])}),
    (PARENTS, {"x": np.ones(5), "par": np.array([-1, 0, 1, 4, 3])}),
    (PARENTS, {"x": np.ones(5), "par": np.array([-1, 0, 2, 1, 3])}),
    (PARENTS, {"x": np.ones(5), "par": np.array([-1, 0, 1, 5, 3])}),
    (GUARDED, {"X": np.ones(3), "k": np.array([2, 2, 2])}),
    ("c[i] = k[i]\nY[i] = X[c[i]] if not inside", {"X": np.ones(3), "k": np.array([0, 3, 1])}),
    ("c[i] = k[i] % d[i]\nY[i] = X[c[i]]", {"X": np.ones(2), "k": np.array([0, 1], np.uint64), "d": np.array([1, 2])}),
    ("c[i] = k[i] > 0\nY[i] = X[c[i]]", {"X": np.ones(2), "k": np.array([0, 1])}),
    ("n: int\nY[i] = X[k[i]] + X[n]", {"X": np.ones(2), "k": np.array([0, 2]), "n": -1}),  # the first of two is told
]


def check_same(found: Any, wanted: Any) -> None:
    assert isinstance(found, dict) == isinstance(wanted, dict)
    for name in wanted if isinstance(wanted, dict) else [None]:
        a, b = (found, wanted) if name is None else (found[name], wanted[name])
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def programs(text: str, wrt: list[str], arrays: Arrays) -> list[tuple[ts.Program, Arrays]]:
    program = ts.program(text)
    found = [(program, arrays)]
    if wrt:
        results = program.run_reference(arrays)
        results = results if isinstance(results, dict) else {program.outputs[0]: results}
        seeds = {f"{name}.grad": R.random(a.shape) for name, a in results.items() if a.dtype.kind == "f"}
        of = [name.removesuffix(".grad") for name in seeds]
        found.append((program.adjoint(wrt=wrt, of=of), {**arrays, **seeds}))
    return found


@pytest.mark.parametrize("name", GOOD)
def test_compiled_forward_and_back(name: str) -> None:
    text, wrt, arrays = GOOD[name]
    for program, given in programs(text, wrt, arrays):
        assert not str(program.plan(given)).startswith("interpreted")
        for _ in range(3):  # the first call, one that is known, one that is run again
            check_same(program(given), program.run_reference(given))


@pytest.mark.parametrize(("text", "arrays"), BAD)
def test_refused_in_the_words_of_the_interpreter(text: str, arrays: Arrays) -> None:
    program = ts.program(text)
    with pytest.raises(ts.SwapError) as wanted:
        program.run_reference(arrays)
    for _ in range(3):
        with pytest.raises(ts.SwapError) as found:
            program(arrays)
        assert str(found.value) == str(wanted.value)


@pytest.mark.parametrize(
    ("name", "argument", "bad"),
    [
        ("scatter", "g", [2, 2]), ("scatter", "g", [0, 3]), ("scatter", "g", [-1, 0]),
        ("parents", "par", [-1, 0, 3, 1, 1]),
        ("guarded gather", "par", [-1, 3]), ("divisors", "k", [2, 0, 1]), ("quotients", "s", [0, 1, 2]),
        ("copied indices", "g", [0, 1, 2, 3, 10]), ("two scatters", "h", [1, 0]),
    ],
)  # fmt: skip
def test_values_of_later_calls_are_looked_at_too(name: str, argument: str, bad: list[int]) -> None:
    """Good, good, bad, good: forward and, where there is one, adjoint."""
    text, wrt, arrays = GOOD[name]
    for program, given in programs(text, wrt, arrays):
        right = program.run_reference(given)
        for _ in range(3):
            check_same(program(given), right)
        with pytest.raises(ts.SwapError) as wanted:
            program.run_reference({**given, argument: np.array(bad)})
        with pytest.raises(ts.SwapError) as found:
            program({**given, argument: np.array(bad)})
        assert str(found.value) == str(wanted.value)
        check_same(program(given), right)


@pytest.mark.parametrize("head", ["", "def f(W[i], E[v], k[i]) -> Y[i]:\n    "])
def test_a_derivative_looks_at_what_its_program_alone_reads(head: str) -> None:
    program = ts.program(f"{head}Y[i] = W[i] + floor(E[k[i]])").adjoint(wrt=["W"])
    arrays = {"W": np.ones(2), "E": np.ones(3), "k": np.array([0, 2]), "Y.grad": np.ones(2)}
    for _ in range(3):
        check_same(program(arrays), np.ones(2))
    with pytest.raises(ts.SwapError, match="asks for position 3 of axis 0"):
        program({**arrays, "k": np.array([0, 3])})
    check_same(program(arrays), np.ones(2))


@pytest.mark.filterwarnings("ignore:a call is interpreted")
@pytest.mark.parametrize("guard", ["inside or i < 0", "i < 0 or inside", "not (not inside or i < 0)"])
@pytest.mark.parametrize("value", ["X[k[i]]", "X[k[i]] if k[i] < 3 else 5"])
def test_inside_under_other_words(guard: str, value: str) -> None:
    program = ts.program(f"Y[i] = {value} if {guard}")
    for k in ([0, 2, 1], [0, 3, 1]):
        arrays = {"X": np.arange(1.0, 4), "k": np.array(k)}
        check_same(program(arrays), program.run_reference(arrays))
    assert program(arrays)[1] == (5 if "5" in value else 0)


def test_a_second_adjoint_by_what_the_first_does_not_read() -> None:
    program = ts.program("Y[i] = E[i] * V[i]").adjoint(wrt=["E"]).adjoint(wrt=["E"])
    check_same(program(E=np.ones(3)), np.zeros(3))


def test_positions_of_an_empty_axis() -> None:
    program = ts.program("a[i] argmax= X[i,j]\nY[i] = Z[a[i]]")
    with pytest.raises(ts.SwapError, match="position -1"):
        program(X=np.zeros((2, 0)), Z=np.ones(3))


def test_what_is_interpreted_says_so_once() -> None:
    program = ts.program("m max= X[i]")
    arrays = {"X": np.array([2**63 + 7, 3], np.uint64)}
    with pytest.warns(ts.SwapWarning, match=r"interpreted, which is slow: X holds whole numbers beyond 2\*\*63"):
        program(arrays)
    assert program(arrays) == 2**63 + 7  # a second warning would be an error here
    assert str(program.plan(arrays)).startswith("interpreted: X holds whole numbers")


KINDS = [
    ("a number of numpy's", np.float32(2)), ("an array without axes", np.array(2.0)), ("a whole number", 2),
    ("a truth", True), ("a whole number of numpy's", np.int64(2)), ("a list", [2.0, 1.0, 3.0]),
]  # fmt: skip


@pytest.mark.parametrize("value", [value for _, value in KINDS], ids=[name for name, _ in KINDS])
def test_a_later_call_binds_nothing_again(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = ts.program("Y[i] = a[i] * X[i]" if isinstance(value, list) else "Y[i] = a * X[i]")
    X = np.arange(3.0)
    wanted = program.run_reference(a=value, X=X)
    check_same(program(a=value, X=X), wanted)
    check_same(program(a=value, X=X), wanted)
    with monkeypatch.context() as patch:
        patch.setattr("tensorswap.run.call.bind", None)  # an error, if anything calls it
        check_same(program(a=value, X=X), wanted)


def test_a_static_integer_of_numpys_binds_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ts.program("shift: int\nsize(i) = 3\nY[i] = X[i+shift]")
    X = np.arange(9.0)
    program(X=X, shift=np.int64(2))
    with monkeypatch.context() as patch:
        patch.setattr("tensorswap.run.call.bind", None)
        np.testing.assert_array_equal(program(X=X, shift=np.int64(2)), [2, 3, 4])
        np.testing.assert_array_equal(program(X=X, shift=2), [2, 3, 4])
