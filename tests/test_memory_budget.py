"""A limit of memory changes what a call keeps and computes again, and nothing of what it gives."""

from __future__ import annotations

import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.budget.chain import Chain, Run
from tensorswap.budget.checkpoints import computed, go_back
from tensorswap.budget.recurrence import divide_steps
from tensorswap.budget.within import Within
from tensorswap.cluster import steps_in_shards
from tensorswap.cluster.cutting import NotCut
from tensorswap.program import Program
from tensorswap.run.arguments import bind

from .daily import share

# Each with the shapes of its inputs. `idx` holds positions below 5, `n` is a number.
RECURRENCES = {
    "state": ("H[0,i] = h[i]\nfor t:\n    Z[t,i] += W[i,j] * H[t,j]\n    H[t+1,i] = tanh(Z[t,i] + X[t,i])\n"
              "loss += H[t+1,i] * Y[t,i]", {"h": (3,), "W": (3, 3), "X": (7, 3), "Y": (7, 3)}),
    "guard": ("for t:\n    H[t,i] = sin(X[t,i]) * (H[t-1,i] if t > 0 else h[i])\nloss += H[t,i] ** 2",
              {"h": (3,), "X": (7, 3)}),
    "a start among the steps": ("H[0,i] = h[i] * 2\nfor t:\n    H[t,i] = H[t-1,i] * sin(X[t,i]) if t > 0\n"
                                "loss += H[t,i] * X[t,i]", {"h": (3,), "X": (7, 3)}),
    "down": ("H[size(t),i] = h[i]\nfor t down:\n    H[t+0,i] = H[t+1,i] * sin(X[t,i])\nloss += H[t+0,i] * X[t,i]\n"
             "loss += H[0,i]", {"h": (3,), "X": (7, 3)}),
    "down, guard": ("for t down:\n    H[t,i] = X[t,i] + (sin(H[t+1,i]) if t < size(t) - 1 else h[i])\n"
                    "loss += H[0,i] ** 2", {"h": (3,), "X": (7, 3)}),
    "two steps back": ("H[0,i] = h[i]\nH[1,i] = h[i] ** 2\nfor t:\n    H[t+2,i] = sin(H[t,i]) + H[t+1,i] * X[t,i]\n"
                       "loss += H[size(t)+1,i] * H[size(t),i]", {"h": (3,), "X": (7, 3)}),
    "two tensors": ("C[0,i] = c[i]\nfor t:\n    G[t,i] = sigmoid(C[t,i] + X[t,i])\n"
                    "    C[t+1,i] = G[t,i] * C[t,i] + X[t,i]\n"
                    "    D[t,i] = C[t+1,i] * G[t,i] + (D[t-1,i] if t > 0 else 0)\nloss += D[t,i] * C[t,i]",
                    {"c": (3,), "X": (7, 3)}),
    "two blocks": ("A[0,i] = h[i]\nfor t:\n    A[t+1,i] = sin(A[t,i] + X[t,i])\nB[0,i] = 0\nfor t:\n"
                   "    B[t+1,i] = cos(B[t,i] * A[t+1,i])\nloss += B[t+1,i] * A[t,i]", {"h": (3,), "X": (7, 3)}),
    "another term": ("H[0,i] = h[i] * s\nfor t:\n    H[t+1,i] = tanh(H[t,i] + X[t,i])\nloss += H[size(t),i] ** 2\n"
                     "loss += 0.1 * h[i] ** 2\nloss += X[t,i] * H[t,i]", {"h": (3,), "s": (), "X": (7, 3)}),
    "behind a sum": ("H[0] = h\nfor t:\n    H[t+1] = tanh(H[t] + X[t])\nm += H[t+1] / size(t)\n"
                     "loss += (H[t+1] - m) ** 2", {"h": (), "X": (7,)}),
    "before a sum": ("m[i] += X[t,i] / size(t)\nZ[t,i] = X[t,i] - m[i]\nH[0,i] = h[i]\nfor t:\n"
                     "    H[t+1,i] = H[t,i] * cos(Z[t,i])\nloss += H[size(t),i]", {"h": (3,), "X": (7, 3)}),
    "windows": ("H[0] = h\nfor t:\n    Z[t] += X[t+p] * K[p]\n    H[t+1] = sin(H[t] + Z[t])\nloss += H[t+1]",
                {"h": (), "K": (4,), "X": (10,)}),
    "windows, inside": ("Z[t] += X[t+p-2] * K[p] if inside\nH[0] = h\nfor t:\n    H[t+1] = sin(H[t] + Z[t])\n"
                        "loss += H[t+1]\nloss += X[t]", {"h": (), "K": (5,), "X": (7,)}),
    "strides": ("H[0] = h\nfor t:\n    H[t+1] = sin(H[t] + X[2*t+1] * X[12-2*t])\n"
                "loss += H[t+1]", {"h": (), "X": (14,)}),
    "a half": ("for t:\n    H[t] = X[t//2] * (H[t-1] if t > 0 else h) + Y[t]\nloss += H[t]",
               {"h": (), "X": (4,), "Y": (7,)}),
    "gathers": ("H[0,i] = h[i]\nfor t:\n    H[t+1,i] = tanh(H[t,i] + E[idx[t],i])\nloss += H[t+1,i] ** 2",
                {"h": (3,), "E": (5, 3), "idx": (7,)}),
    "numbers of steps": ("H[0] = h\nfor t:\n    H[t+1] = H[t] * X[t] + sin(t + 1) * n if t % 3 < 2 "
                         "else H[t] / size(t)\nloss += H[size(t)] * t", {"h": (), "n": (), "X": (7,)}),
    "noise": ("H[0] = h\nfor t:\n    H[t+1] = tanh(H[t] + X[t] * normal(seed, t))\nloss += H[t+1]\nseed: int",
              {"h": (), "X": (7,)}),
    "a block inside": ("for t:\n    for l:\n        "
                       "A[t,l] = X[t,l] * (A[t,l-1] if l > 0 else A[t-1,l] if t > 0 else h)\n"
                       "loss += A[size(t)-1,l]", {"h": (), "X": (7, 4)}),
    "layers": ("A[0,b,i] = X[b,i]\nfor t:\n    Z[t,b,i] += W[t,i,j] * A[t,b,j]\n    A[t+1,b,i] = relu(Z[t,b,i])\n"
               "loss += A[size(t),b,i] ** 2", {"X": (4, 3), "W": (7, 3, 3)}),
    "no loss of its own": ("for t:\n    H[t,i] = X[t,i] + 0.5 * (H[t-1,i] if t > 0 else 0)\n"
                           "Y[t,i] = H[t,i] ** 2\nreturn H, Y", {"X": (7, 3)}),
    "a block behind a sum": ("for t:\n    H[t] = sin(X[t] + (H[t-1] if t > 0 else 0))\n    s += H[t]\nfor t:\n"
                             "    B[t] = s * X[t] + (B[t-1] if t > 0 else 0)\nloss += B[t]", {"X": (7,)}),
    "a start of parts": ("size(k) = 2\nH[0,0,i] = a[i]\nH[0,1,i] = 1\nfor t:\n    H[t+1,k,i] = H[t,k,i] * X[t,i]\n"
                         "loss += H[size(t),k,i] * a[i]", {"a": (3,), "X": (7, 3)}),
    "results of before": ("R[i] = h[i] ** 2\nH[0,i] = R[i]\nfor t:\n    H[t+1,i] = sin(H[t,i] + X[t,i])\n"
                          "Q[i] = 2 * h[i]\nreturn R, Q, H", {"h": (3,), "X": (7, 3)}),
    "a maximum": ("for t:\n    M[t+1,i] max= M[t,i] * 0.5\n    M[t+1,i] max= X[t,i]\nreturn M", {"X": (7, 3)}),
    "a minimum": ("H[0,i] min= h[i] * K[p]\nfor t:\n    H[t+1,i] min= H[t,i] * X[t,i]\nreturn H",
                  {"h": (3,), "K": (4,), "X": (7, 3)}),
    "a product": ("for t:\n    C[t+2,i] *= C[t,i] * C[t+1,i]\n    C[t+2,i] *= X[t,i]\nreturn C", {"X": (7, 3)}),
    "a sum": ("for t down:\n    C[t,i] -= X[t,i]\n    C[t,i] += sin(C[t+1,i]) if t < size(t) - 1\nreturn C",
              {"X": (7, 3)}),
    "places further on": ("for t:\n    A[t,i] = X[t,i] * (A[t-1,i] if t > 0 else 1)\n"
                          "    B[t+2,i] = A[t,i] * 2 if t < size(t) - 2\nsize(B, 0) = size(t)\nreturn B",
                          {"X": (7, 3)}),
    "places before": ("for t:\n    A[t,i] = X[t,i] * (A[t-1,i] if t > 0 else 1)\n"
                      "    B[t-1,i] = A[t,i] * 2 if t > 0\nsize(B, 0) = size(t)\nreturn B", {"X": (7, 3)}),
    "a part of an axis": ("H[0,i] = h[i]\nfor t:\n    H[t+1,i] = sin(H[t,i] + X[t,i])\nsize(u) = 4\n"
                          "q[i] += H[u,i]\nreturn q", {"h": (3,), "X": (7, 3)}),
    "what nobody needs": ("R[i] = h[i] ** 2\nH[0,i] = h[i]\nfor t:\n    H[t+1,i] = sin(H[t,i] + X[t,i])\n"
                          "    m max= H[t,i]\n    a[i] += H[t,i]\ne[i] = H[size(t),i] + R[i]\nreturn H",
                          {"h": (3,), "X": (7, 3)}),
    "something infinite": ("for t:\n    H[t+1,i] = H[t,i] * big[t,i] + h[i]\nloss += H[t,i]",
                           {"h": (3,), "big": (7, 3)}),
}  # fmt: skip
REFUSED = {
    "max= over the steps": ("for t:\n    H[t] = X[t] + (H[t-1] if t > 0 else 0)\n"
                            "m max= H[t]\nloss = m", "not by a sum"),
    "both directions": ("for t:\n    H[t] = X[t] + (H[t-1] if t > 0 else 0)\nfor t down:\n"
                        "    B[t] = H[t] * (B[t+1] if t < size(t) - 1 else 1)\nloss += B[t]", "both directions"),
    "the first state later": ("H[0] = X[0]\nfor t:\n    H[t+1] = H[t] * H[0] + X[t]\nloss += H[t]",
                              "not `t` and a number"),
    "inside, of a state": ("for t:\n    H[t] = X[t]\n    s += exp(H[t-1]) if inside\nloss = s", "in bounds"),
    "positions": ("for t:\n    P[t] argmax= X[t] * X[u] + (P[t-1] if t > 0 else 0)\nloss += X[t] * P[t]", "positions"),
}  # fmt: skip


def arguments(text: str, shapes: dict[str, tuple[int, ...]], dtype: type = np.float64) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    made: dict[str, Any] = {n: np.asarray(rng.normal(size=shape), dtype) for n, shape in shapes.items()}
    if "idx" in shapes:
        made["idx"] = rng.integers(0, 5, shapes["idx"])
    if "big" in shapes:
        made["big"][6, 1] = np.inf
    if "seed" in text:
        made["seed"] = 3
    return made


def derivative(program: Program) -> tuple[Program, tuple[str, ...]]:
    wrt = tuple(name for name in program.inputs if name not in ("idx", "seed"))
    return (program.grad(wrt=wrt) if program.outputs == ("loss",) else program.adjoint(wrt)), wrt


def seeded(derived: Program, given: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(6)
    names = [name for name in derived.inputs if name.endswith(".grad")]
    if not names:
        return given
    assert derived._origin is not None
    results = derived._origin.run_reference(given)
    results = results if isinstance(results, dict) else {derived._origin.outputs[0]: results}
    return {**given, **{name: rng.normal(size=results[name.removesuffix(".grad")].shape) for name in names}}


@pytest.mark.parametrize("name", share(RECURRENCES, 3))
def test_stretches_give_what_the_whole_gives(name: str) -> None:
    text, shapes = RECURRENCES[name]
    program = ts.program(text)
    given = arguments(text, shapes)
    derived, wrt = derivative(program)
    wanted = derived.run_reference(seeded(derived, given))
    wanted = wanted if isinstance(wanted, dict) else {derived.outputs[0]: wanted}
    bound = bind(program.loops, given)
    seeds = {n.removesuffix(".grad"): a for n, a in seeded(derived, given).items() if n.endswith(".grad")}
    recurrence = divide_steps(bound, "t", program.outputs)
    for length, kept in ((1, (2,)), (3, (1, 3))):
        ends = [(start, min(start + length, 7)) for start in range(0, 7, length)]
        ranges = [(7 - stop, 7 - start) for start, stop in ends] if recurrence.down else ends
        for places in kept:
            run = Run(Chain(recurrence, bound, ranges, places), given, wrt)
            run(lambda outputs: seeds or {"loss": np.ones(())})
            for output, array in wanted.items():
                found = run.gradient(output.removesuffix(".grad")) if output.endswith(".grad") else run.outputs[output]
                np.testing.assert_allclose(found, array, rtol=1e-9, atol=1e-12, err_msg=f"{output}, {length}, {places}")
                assert np.shape(found) == array.shape


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_stretches(name: str) -> None:
    text, reason = REFUSED[name]
    with pytest.raises(NotCut, match=reason):
        divide_steps(bind(ts.program(text).loops, {"X": np.ones(7)}), "t", ["loss"])


def test_no_steps_have_no_stretches() -> None:
    with pytest.raises(NotCut, match="no steps"):
        divide_steps(bind(ts.program("for t:\n    H[t+1] = H[t] + X[t]").loops, {"X": np.ones(0)}), "t", ["H"])


def test_the_schedule_computes_the_least() -> None:
    @cache
    def least(stretches: int, places: int) -> int:
        if stretches <= 1:
            return 0
        if places == 1:
            return stretches * (stretches - 1) // 2
        return min(n + least(stretches - n, places - 1) + least(n, places) for n in range(1, stretches))

    for stretches in range(1, 40):
        for places in range(1, 9):
            order: list[int] = []
            moves: list[int] = []

            def forward(number: int, state: int, moves: list[int] = moves) -> int:
                assert state == number
                moves.append(number)
                return state + 1

            def backward(number: int, state: int, order: list[int] = order) -> None:
                assert state == number
                order.append(number)

            go_back(stretches, places, 0, forward, backward)
            assert order == list(range(stretches))[::-1]
            assert len(moves) == computed(stretches, places) == least(stretches, places)


# -- limits


LONG, LONG_SHAPES = RECURRENCES["state"]


def long(steps: int, dtype: type = np.float64) -> dict[str, Any]:
    given = arguments(LONG, {**LONG_SHAPES, "X": (steps, 3), "Y": (steps, 3)}, dtype)
    return {**given, "W": given["W"] / 4}


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("memory", ["1 MB", "100 KB", "40 KB"])
def test_a_long_recurrence_keeps_to_its_limit(memory: str, dtype: type) -> None:
    given = long(3000, dtype)
    program = ts.program(LONG)
    wanted = program.grad(wrt=["W", "h"])(given)
    limited = program.grad(wrt=["W", "h"], memory=memory)
    found = limited(given)
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_allclose(found[name], array, rtol=1e-9 if dtype == np.float64 else 2e-4)
    plan = limited.plan(given)
    assert plan.needed <= plan.limit
    assert ("it runs as it is" in str(plan)) == (memory == "1 MB")
    limited(given)  # the second call may make what all later ones of a process use
    tracemalloc.start()
    limited(given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < plan.limit + 100_000  # Python's own objects beside it


def test_types_are_those_of_the_whole() -> None:
    program = ts.program(LONG.replace("h[i]", "s"))
    given = {**long(60, np.float32), "s": 2}
    del given["h"]
    wanted = program.grad(wrt=["W", "s"]).run_reference(given)
    limited = program.grad(wrt=["W", "s"], memory="2 KB")
    assert "stretches" in str(limited.plan(given))
    for name, array in limited(given).items():
        assert (type(array), array.dtype) == (type(wanted[name]), wanted[name].dtype)
        np.testing.assert_allclose(array, wanted[name], rtol=1e-3)


def test_other_statics_and_types_are_another_call() -> None:
    program = ts.program("for t:\n    H[t+1] = 0.5 * H[t] + X[t] * k\nloss += H[t+1] ** 2\nk: int")
    limited = program.grad(wrt=["X"], memory=1800)
    for k, x in ((np.int64(2), np.linspace(0, 1, 90)), (np.int64(3), [1] * 90), (np.int64(3), [0.5] * 90)):
        wanted = program.grad(wrt=["X"]).run_reference(X=x, k=k)
        np.testing.assert_allclose(limited(X=x, k=k)["X.grad"], wanted["X.grad"])
    assert len(limited.ways) == 3
    assert all(way.chain is not None for way in limited.ways.values())
    with pytest.raises(ts.SwapError, match="length"):
        limited(X=[[1], [2, 3]], k=2)


@pytest.mark.parametrize(("of", "memory"), [("H", 4000), ("z", 3000)])
def test_a_tensor_inside_as_the_start_of_a_derivative(of: str, memory: int) -> None:
    program = ts.program(LONG.replace("loss", "z") + "\nloss = z ** 2")
    derived = program.grad("z", ["W"]) if of == "z" else program.adjoint(["W"], of=["H"])
    given = long(60)
    given |= {} if of == "z" else {"H.grad": np.linspace(-1, 1, 183).reshape(61, 3)}
    wanted, limited = derived.run_reference(given), derived.within(memory)
    assert "stretches" in str(limited.plan(given))
    found = limited(given)
    if of == "H":
        with pytest.raises(ts.SwapError, match="without Y"):
            limited({name: array for name, array in given.items() if name != "Y"})
    np.testing.assert_allclose(found["W.grad"] if of == "z" else found, wanted["W.grad"] if of == "z" else wanted)


def test_inputs_that_are_left_out() -> None:
    derived = ts.load("rnn_tanh").adjoint(["weight_hh"], of=["h_n"])
    rng = np.random.default_rng(3)
    given = {"input": rng.normal(size=(40, 2, 3)), "weight_ih": rng.normal(size=(2, 3)), "bias_ih": np.ones(2)}
    given |= {"weight_hh": rng.normal(size=(2, 2)), "h_n.grad": np.ones((2, 2))}
    limited = derived.within("3 KB")
    assert "stretches" in str(limited.plan(given))
    np.testing.assert_allclose(limited(given), derived.run_reference(given))
    with pytest.raises(ts.SwapError, match="without h_0"):
        ts.load("rnn_tanh").adjoint(["h_0"], of=["h_n"]).within("1 KB")(given)


def test_what_comes_before_and_after_counts() -> None:
    program = ts.program(
        LONG + "\nK[i,j,t] = H[size(t),i] * H[size(t),j] * X[t,i]\nk[j,t] max= K[i,j,t]\nloss += k[i,t]"
    )
    assert program.grad(wrt=["W"], memory="200 KB").plan(long(1000)).needed > 60_000
    with pytest.raises(ts.SwapError, match="in stretches of t it needs"):
        program.grad(wrt=["W"], memory="20 KB")(long(1000))


@pytest.mark.compiled
def test_programs_of_parts_keep_no_memory_while_others_run() -> None:
    limited = ts.program(LONG).grad(wrt=["W", "h"], memory="40 KB")
    limited(long(3000))
    (way,) = limited.ways.values()
    assert way.chain is not None
    programs = [
        p for part in way.chain.parts.values() for p in (part.program, *part.adjoints.values()) if p is not None
    ]
    kept = [p for p in programs if any(k.runs.spare for k in p._caller.prepared.values())]
    assert len(programs) > 3
    assert len(kept) <= 1


@pytest.mark.compiled
def test_a_forward_call_and_one_without_steps_run_in_shards() -> None:
    program = ts.program("D[i,j] += (X[i,k] - Y[j,k]) ** 2\nS[i] += exp(-D[i,j])\nloss += log(S[i])")
    given = {"X": np.linspace(0, 1, 1200).reshape(400, 3), "Y": np.linspace(0, 2, 900).reshape(300, 3)}
    derived = program.grad(wrt=["X"])
    wanted = derived.run_reference(given)
    limited = derived.within(200_000)
    if "shards" in str(limited.plan(given)):  # kernels that fuse all of it need no more as they are
        assert limited.plan(given).needed <= 200_000
    for name, array in limited(given).items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-9)
    kept = ts.program("Y[i,k] = X[i,k] * 2\nZ[i] += Y[i,k]\nreturn Y, Z").within("2 KB")
    assert "in files" in str(kept.plan(X=(400, 3)))
    np.testing.assert_array_equal(kept(X=np.ones((400, 3)))["Z"], np.full(400, 6.0))
    with pytest.raises(ts.SwapError, match="allow more"):
        ts.program("Y[i,k] += X[i,j] * X[j,k]").within(100)(X=np.ones((40, 40)))


def test_bad_limits() -> None:
    program = ts.program(LONG)
    with pytest.raises(ts.SwapError, match="64 XB"):
        program.grad(memory="64 XB")
    with pytest.raises(ts.SwapError, match=r"allow more"):
        program.grad(wrt=["W"], memory=200)(long(300))
    limited = program.grad(wrt=["W"], memory="20 KB")
    assert isinstance(limited, Within)
    assert limited.inputs == program.inputs
    assert limited.outputs == ("loss", "W.grad")
    assert str(limited) == str(program.grad(wrt=["W"]))
    with pytest.raises(ts.SwapError, match="missing"):
        limited(X=np.ones((300, 3)))


def test_an_error_in_a_stretch_tells_which() -> None:
    text, shapes = RECURRENCES["gathers"]
    given = arguments(text, {**shapes, "idx": (2000,)})
    given["idx"][1500] = 7
    with pytest.raises(ts.SwapError, match="position 7"):
        ts.program(text).grad(wrt=["E"], memory="20 KB")(given)


# -- training


def trained(**more: Any) -> Any:
    generator = np.random.default_rng(1)
    data = {"X": generator.normal(size=(96, 6)), "y": generator.normal(size=(96, 3))}
    text = "H[b,h] += X[b,d] * V[h,d]\nR[b,h] = tanh(H[b,h])\nS[b,c] += R[b,h] * W[c,h]\n"
    text += "loss += (S[b,c] - y[b,c]) ** 2 / size(b)"
    params = {"V": generator.normal(size=(50, 6)), "W": generator.normal(size=(3, 50)) / 7}
    return ts.fit(ts.program(text), params, data, batch="b", batch_size=48, epochs=2, progress=False, lr=0.01, **more)


def test_training_within_a_limit_learns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def train(program: Program, index: str, cluster: Any, shards: int, average_every: None) -> Any:
        asked.append(shards)
        return in_shards(program, index, cluster, shards, average_every)

    in_shards = steps_in_shards.train
    monkeypatch.setattr(steps_in_shards, "train", train)
    whole, cut = trained(memory="1 GB"), trained(memory="30 KB")
    assert len(asked) == 1
    assert asked[0] > 1
    for name, array in whole.params.items():
        np.testing.assert_allclose(cut.params[name], array, rtol=1e-9)
    np.testing.assert_allclose(cut.history.loss, whole.history.loss, rtol=1e-9)


def test_training_that_does_not_fit() -> None:
    with pytest.raises(ts.SwapError, match="for one example alone"):
        trained(memory="2 KB")
    with pytest.raises(ts.SwapError, match="memory chooses the number of shards"):
        trained(memory="2 KB", shards=2)
    with pytest.raises(ts.SwapError, match="64 XB"):
        trained(memory="64 XB")
