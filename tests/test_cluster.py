"""Programs cut along an index, their shards run in this process: the same results, or a reason why not."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import tensorswap as ts
from benchmarks.cluster.model import MEASURED, WORKLOADS, model, simulate
from tensorswap.cluster import steps_in_shards
from tensorswap.cluster.late import Late
from tensorswap.cluster.serial import Serial
from tensorswap.cluster.shard_program import ranges
from tensorswap.cluster.task_operands import Made
from tensorswap.cluster.tasks import Join, Leaf, Lift, Task, joined
from tensorswap.errors import ArgumentError, BoundsError, ClusterError, LimitError, ProgramError
from tensorswap.program import Program

from .cluster_programs import EXAMPLES, NETWORK, SOFTMAX, Example
from .daily import LONG
from .generate import Case, programs

SEED = int(os.environ.get("TENSORSWAP_SEED") or secrets.randbits(32))  # other programs in every run
check = settings(max_examples=400 if LONG else 4, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def outputs(program: Program, result: Any) -> dict[str, np.ndarray]:
    return result if isinstance(result, dict) else {program.outputs[0]: result}


def check_equal(got: dict[str, np.ndarray], want: dict[str, np.ndarray], tolerance: float, told: str = "") -> None:
    assert got.keys() == want.keys(), told
    for name, array in want.items():
        assert (got[name].dtype, got[name].shape) == (array.dtype, array.shape), (told, name)
        assert np.allclose(got[name], array, tolerance, tolerance, equal_nan=True), (told, name, got[name], array)


def check_cut(program: Program, arrays: dict[str, Any], cut: Any, shards: Any, tolerance: float) -> bool:
    """Whether a program can be cut so; if it can, its shards must give what it gives."""
    want = outputs(program, program.run_reference(arrays))
    try:
        got = outputs(program, program.shard(cut, client="serial", shards=shards)(arrays))
    except ProgramError as error:
        if "cannot be cut along" not in str(error):
            raise
        return False
    check_equal(got, want, tolerance, f"{program}\ncut along {cut}\nTENSORSWAP_SEED={SEED}")
    return True


@seed(SEED)
@check
@given(programs)
def test_shards_of_generated_programs_give_what_the_program_gives(case: Case) -> None:
    program = ts.program(case.text)
    made = [(program, case.arrays)]
    if case.wrt:
        random, values = np.random.default_rng(0), outputs(program, program.run_reference(case.arrays))
        grads = {f"{name}.grad": random.standard_normal(array.shape) for name, array in values.items()}
        made.append((program.adjoint(wrt=case.wrt), {**case.arrays, **grads}))
    for derived, arrays in made:
        own = {name: array for name, array in arrays.items() if name in derived.loops.names}
        indices = list(derived.loops.indices)
        for index in indices:
            for shards in (2, 3):
                check_cut(derived, own, index, shards, 1e-9)
        if len(indices) > 1:
            check_cut(derived, own, [indices[0], indices[-1]], 2, 1e-9)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_are_cut(example: Example) -> None:
    program = example.program()
    for shards in (1, example.shards, 100) if LONG else (example.shards,):
        assert check_cut(program, example.arrays, example.indices, shards, 2e-5), shards


REFUSED = [
    ("for t:\n    H[t] = X[t] + (H[t-1] if t > 0 else 0)\nY[b] = Z[b]", "t", "come one after the other", '"b"'),
    ("size(Y, 0) = 4\nY[p[b]] = X[b]", "b", "`=` says nothing of how to join", None),
    ("Y[2*b] = X[b]\nS[i] = X[i]", "b", "would write into Y from every shard", '"i"'),
    ("for t:\n    s[t] += X[b] * (s[t-1] if t > 0 else 1)\nsize(t) = 3", "b", "reduced over b", None),
    ("Y[i] = X[i]\nsize(q) = 4", "q", "nothing that it computes depends on the index", '"i"'),
]


@pytest.mark.parametrize(("text", "index", "reason", "other"), REFUSED)
def test_a_cut_that_would_be_wrong_is_refused(text: str, index: str, reason: str, other: str | None) -> None:
    program = ts.program(text)
    arrays = {"X": np.ones(4), "Z": np.ones(4), "p": np.arange(4)}
    own = {name: array for name, array in arrays.items() if name in program.inputs}
    with pytest.raises(ProgramError) as error:
        program.shard(index, client="serial")(own)
    assert f"cannot be cut along {index}" in str(error.value)
    assert reason in str(error.value)
    assert (f"p.shard({other})" if other else "run it as it is") in str(error.value)


BAD = [
    ({"index": "x"}, "has no index 'x'"),
    ({"index": 3}, "the index to cut along is a name"),
    ({"index": ["i", "i"]}, "the index to cut along is a name"),
    ({"index": []}, "the index to cut along is a name"),
    ({"shards": 0}, "shards is a whole number above 0"),
    ({"shards": True}, "shards is a whole number above 0"),
    ({"shards": [2, 2]}, "shards has 2 numbers for 1 indices"),
    ({"client": 5}, "a cluster is a client of Dask's"),
    ({"memory": "much"}, "memory is 'much'"),
    ({"out": 5}, "out is the path of a folder"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_arguments_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ts.program("Y[i] = X[i]").shard(**{"index": "i", "client": "serial", **options})


def test_a_size_that_is_no_whole_number_is_refused_after_one_that_is() -> None:
    q = ts.program("Y[i] = X[i]").shard("i", client="serial")
    assert q(X=np.ones(6), i=6).shape == (6,)
    for size in (6.0, [6], "6"):
        with pytest.raises(ArgumentError, match="must be a whole number"):
            q(X=np.ones(6), i=size)


def test_an_error_of_a_shard_says_which() -> None:
    program = ts.program("Y[b] = E[t[b]]")
    t = np.zeros(10, np.int64)
    t[7] = 99
    with pytest.raises(BoundsError, match="in the shard of b from 6 to 8"):
        program.shard("b", client="serial", shards=5)(E=np.ones(3), t=t)


def test_a_derivative_is_refused_where_its_program_is() -> None:
    adjoint = ts.program("size(i) = 5\nY[i] += X[i+p] * W[p]").adjoint(wrt=["X"])
    arrays = {"X": np.ones(5), "W": np.ones(3), "Y.grad": np.ones(5)}
    with pytest.raises(BoundsError):
        adjoint(arrays)
    with pytest.raises(BoundsError):
        adjoint.shard("s", client="serial")(arrays)


def test_as_many_shards_as_there_are_positions_at_most() -> None:
    program = ts.program("Y[i] = X[i] - (X[i-1] if i > 0 else 0)\ns += Y[i]")
    for shards in (1, 100):
        assert check_cut(program, {"X": np.arange(9.0)}, "i", shards, 1e-12)


def test_a_range_is_shared_out() -> None:
    assert ranges(10, 4) == [(0, 3), (3, 6), (6, 8), (8, 10)]
    assert ranges(2, 5) == [(0, 1), (1, 2)]
    assert ranges(0, 5) == [(0, 0)]


def test_an_empty_index() -> None:
    program = ts.program("Y[i] += X[b,i]\nZ[b,i] = X[b,i]\nk[i] argmax= X[b,i]")
    got = program.shard("b", client="serial")(X=np.zeros((0, 3)))
    assert got["Y"].tolist() == [0, 0, 0]
    assert got["Z"].shape == (0, 3)
    assert got["k"].tolist() == [-1, -1, -1]


def test_positions_among_no_candidates() -> None:
    """The index that is cut has positions, another one has none."""
    program = ts.program("k argmax= X[b,i]\nn[b] argmin= X[b,i]\nm[i] argmax= X[b,i]")
    for shape in ((4, 0), (0, 4)):
        for index in ("b", "i"):
            assert check_cut(program, {"X": np.zeros(shape)}, index, 2, 0)


def test_positions_are_joined_as_one_machine_finds_them() -> None:
    """Ties, NaN, infinities and elements without a candidate, wherever the shards end."""
    values = np.array([[1, 3, 3, -np.inf, 3], [np.nan, 1, np.nan, 2, 0], [-np.inf] * 5])
    for operator in ("argmax=", "argmin="):
        for guard in ("", " if b > 2", " if b < 2", " if b < 0"):
            program = ts.program(f"k[i] {operator} X[i,b]{guard}\nall {operator} X[i,b]{guard}")
            want = program.run_reference(X=values)
            for shards in (2, 3, 5):
                for index in ("b", "i") if not guard else ("b",):
                    got = program.shard(index, client="serial", shards=shards)(X=values)
                    assert got["k"].tolist() == want["k"].tolist(), (operator, guard, shards, index)
                    assert got["all"] == want["all"], (operator, guard, shards, index)


def test_a_join_that_is_wrong_would_be_seen() -> None:
    """The check above can fail: without the lift, a position is that of the shard."""
    arrays = {"left k": np.array([0]), "right k": np.array([1]), "left b": np.array([1.0]), "right b": np.array([2.0])}
    operators = {"k": "argmax=", "b": "max="}
    lift = {"k": Lift((2,), 0, 3, 5)}
    assert joined(Join(operators, {"k": "b"}, ({}, lift)), arrays)["k"].tolist() == [4]
    assert joined(Join(operators, {"k": "b"}), arrays)["k"].tolist() == [1]


def test_types_stay_as_they_are() -> None:
    """A number without a type of its own widens nothing on its way from stage to stage."""
    text = "n += 1 if X[b] > 0\nY[b] = X[b] / n\nc += 0.5 * size(b)\nZ[b] = Y[b] * c + m"
    program = ts.program(text, outputs=["Y", "Z", "n"])
    arrays = {"X": np.linspace(-1, 1, 9).astype(np.float32), "m": 2.5}
    want = program.run_reference(arrays)
    got = program.shard("b", client="serial", shards=4)(arrays)
    check_equal(got, want, 1e-6)
    assert got["Y"].dtype == got["Z"].dtype == np.float32


def test_optional_tensors_options_and_defaults() -> None:
    linear = ts.load("linear")
    X, W = np.ones((6, 3), np.float32), np.ones((2, 3), np.float32)
    index = next(i for i in linear.loops.indices if i not in ("...",))
    assert check_cut(linear, dict(zip(linear.inputs, (X, W), strict=False)), index, 2, 1e-6)


def test_an_update_is_an_output() -> None:
    program = ts.program("g[i] += X[b,i]\nW[i] = W[i] - lr * g[i]\nq += W[i]**2")
    arrays = {"X": np.arange(12.0).reshape(4, 3), "W": np.ones(3), "lr": 0.1}
    for index in ("b", "i"):
        assert check_cut(program, arrays, index, 2, 1e-12)
    assert (arrays["W"] == 1).all()


def test_the_bits_depend_on_the_number_of_shards_alone() -> None:
    program = ts.program("s += X[b]")
    X = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    found = {shards: program.shard("b", client="serial", shards=shards)(X=X).tobytes() for shards in range(1, 9)}
    again = {shards: program.shard("b", client="serial", shards=shards)(X=X).tobytes() for shards in range(1, 9)}
    assert found == again


def test_tasks_that_are_late_are_told_from_tasks_that_wait() -> None:
    leaf = Leaf(b"", "", {}, {"s": np.dtype(float)})
    first, second, third = (Task(f"t{k}", leaf, {}, k) for k in range(3))
    join = Task("t3", Join({"s": "+="}), {"left s": Made("t0", "s", (), np.dtype(float))}, 0)
    late = Late((first, second, third, join))
    assert late.found(set(), 0.0) == []
    assert late.found({"t0"}, 1.0) == []
    assert late.found({"t0"}, 4.9) == []  # twice the second of t0, and the grace
    assert late.found({"t0"}, 5.1) == ["t1", "t2"]  # but not the join: there is none to compare it with
    assert late.found({"t0", "t1"}, 6.0) == []  # it takes longer than was thought
    assert late.found({"t0", "t1"}, 20.0) == ["t2"]


# -- what is cut


def test_a_plan_tells_what_is_cut_and_what_travels() -> None:
    plan = ts.program("Y[i,j] += A[i,k] * B[k,j]").shard("i", client="serial", shards=4).plan(A=(64, 32), B=(32, 48))
    assert [row.what for row in plan.inputs] == ["cut along axis 0", "whole, sent to every worker"]
    assert [row.what for row in plan.outputs] == ["put together along axis 0"]
    assert (plan.shards, plan.stages, plan.broadcast, plan.cut) == (4, 1, 32 * 48 * 8, 64 * 32 * 8)
    assert plan.seconds(4) < plan.seconds(1)
    assert "cut along i into 4 shards" in str(plan)
    halo = ts.program("Y[i] += X[i+p] * W[p]").shard("i", client="serial", shards=4).plan(X=(67,), W=(4,))
    assert halo.inputs[0].what == "cut along axis 0 with a halo"
    assert halo.cut == (67 + 3 * 3) * 8
    stages = ts.program(SOFTMAX).shard("b", client="serial", shards=4).plan(x=(64,))
    assert (stages.shards, stages.stages, stages.broadcast, stages.cut) == (4, 3, 0, 64 * 8)
    summed = ts.program("s += X[b]").shard("b", client="serial", shards=4).plan(X=(64,))
    assert summed.outputs[0].what == "joined by +="


def test_the_model_of_cost_agrees_with_the_simulation() -> None:
    for load in WORKLOADS:
        for workers in (1, 2, 3, 64, 1000):
            told, made = model(MEASURED, load, workers), simulate(MEASURED, load, workers)
            assert 0.6 < told / made < 1.7, (load.name, workers, told, made)


# -- arrays that are not in memory


def test_mapped_files_are_read_in_parts(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((40, 6, 5)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    program = ts.program("Y[b,j] += X[b,i,j] * W[i]")
    for index in "bij":
        want = program.shard(index, client="serial", shards=3)(X=X, W=np.ones(6, np.float32))
        assert (program.shard(index, client="serial", shards=3)(X=mapped, W=np.ones(6, np.float32)) == want).all()
    got = program.shard(["b", "i"], client="serial", shards=[2, 3])(X=mapped[5:], W=np.ones(6, np.float32))
    assert np.allclose(got, X[5:].sum(axis=1), 1e-5, 1e-5)


def test_memory_is_kept_and_large_outputs_go_to_files(tmp_path: Path) -> None:
    A, B = np.ones((256, 64)), np.ones((64, 256))
    np.save(tmp_path / "a.npy", A)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    program = ts.program("Y[i,j] += A[i,k] * B[k,j]")
    q = program.shard("i", memory="300 KB")
    assert q.plan(A=mapped, B=B).memory <= 300_000
    got = q(A=mapped, B=B)
    assert isinstance(got, np.memmap)
    assert (got == 64).all()
    stored = program.shard("i", memory="300 KB", out=tmp_path / "out")(A=mapped, B=B)
    assert (np.load(tmp_path / "out" / "Y.npy") == stored).all()
    with pytest.raises(LimitError, match=r"a shard needs .* B takes"):
        program.shard("i", memory="100 KB")(A=mapped, B=B)
    assert (program.shard(["i", "j"], memory="100 KB")(A=mapped, B=B) == 64).all()


def test_a_file_that_is_read_may_be_the_one_that_is_written(tmp_path: Path) -> None:
    q = ts.program("X[b] = X[b] + 1\ns += X[b]\nk[c] = Z[c]").shard("b", client="serial", shards=2, out=tmp_path)
    first = q(X=np.arange(5.0), Z=np.zeros(0))
    second = q(X=first["X"], Z=np.zeros(0))
    assert second["X"].tolist() == [2, 3, 4, 5, 6]
    assert first["X"].tolist() == [1, 2, 3, 4, 5]
    assert np.load(tmp_path / "X.npy").tolist() == [2, 3, 4, 5, 6]
    assert float(np.load(tmp_path / "s.npy")) == 20
    with pytest.raises(BoundsError):
        ts.program("Y[b] = E[t[b]]").shard("b", client="serial", out=tmp_path)(E=np.ones(3), t=np.array([7, 9]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["X.npy", "k.npy", "s.npy"]


def test_zarr_and_xarray(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray", reason="xarray is not installed: make cluster installs it")
    zarr = pytest.importorskip("zarr", reason="zarr is not installed: make cluster installs it")
    X, W = np.random.default_rng(0).standard_normal((20, 6)), np.ones(6)
    program = ts.program("Y[b] += X[b,i] * W[i]")
    want = program.shard("b", client="serial", shards=3)(X=X, W=W)
    stored = zarr.create_array(store=str(tmp_path / "x.zarr"), shape=X.shape, chunks=(7, 3), dtype=X.dtype)
    stored[:] = X
    assert (program.shard("b", client="serial", shards=3)(X=stored, W=W) == want).all()
    turned = xarray.DataArray(X.T, dims=("i", "b"))
    assert (program.shard("b", client="serial", shards=3)(X=turned, W=xarray.DataArray(W, dims=("i",))) == want).all()
    assert (program.shard("b", client="serial", shards=3)(X=xarray.Variable(("b", "i"), X), W=W) == want).all()
    with pytest.raises(ArgumentError, match="X is an xarray Dataset"):
        program.shard("b", client="serial")(X=xarray.Dataset({"X": turned}), W=W)
    with pytest.raises(ArgumentError, match="has the dimensions i, c"):
        program.shard("b", client="serial")(X=xarray.DataArray(X.T, dims=("i", "c")), W=W)


# -- training


def digits() -> dict[str, Any]:
    random = np.random.default_rng(0)
    X = random.standard_normal((50, 6)).astype(np.float32)
    return {"X": X, "t": X[:, :3].argmax(axis=1)}


def trained(data: Any = None, params: Any = None, **options: Any) -> Any:
    params = params or {"W1": "xavier", "W2": "xavier"}
    fixed = {"sizes": {"h": 5, "k": 3}, "batch_size": 16, "lr": 0.05, "progress": False, "epochs": 2}
    return ts.fit(ts.program(NETWORK), params, data or digits(), **{**fixed, **options})


@pytest.mark.compiled
def test_a_training_in_shards_is_the_training() -> None:
    whole, parts = trained(), trained(shards=3)
    check_equal(parts.params, whole.params, 1e-4)
    assert np.allclose(parts.history.loss, whole.history.loss, 1e-4)
    assert (trained(shards=3).params["W1"] == parts.params["W1"]).all()


@pytest.mark.compiled
def test_a_training_in_shards_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = trained(shards=3)
    trained(shards=3, epochs=1, checkpoint=tmp_path / "c")
    resumed = trained(shards=3, checkpoint=tmp_path / "c", resume=True)
    assert all((resumed.params[name] == whole.params[name]).all() for name in whole.params)
    with pytest.raises(ArgumentError, match="its shards is 3, not 2"):
        trained(shards=2, checkpoint=tmp_path / "c", resume=True)
    with pytest.raises(ArgumentError, match="its shards is 3, not None"):
        trained(checkpoint=tmp_path / "c", resume=True)


class Failing:
    """A cluster that is gone after some calls."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def run(self, *arguments: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise ClusterError("the cluster is gone")
        return Serial().run(*arguments)


@pytest.mark.compiled
@pytest.mark.parametrize("every", [None, 2])
def test_a_training_whose_cluster_is_gone_goes_on_from_where_it_stood(
    every: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of the steps that are made at a time were made already when it went."""
    monkeypatch.setattr(steps_in_shards, "CHAIN", 16)
    options = {"shards": 2, "batch_size": 1, "average_every": every}
    whole = trained(**options)
    for calls in (2, 3, 4, 7):
        with pytest.raises(ClusterError):
            trained(**options, cluster=Failing(calls), checkpoint=tmp_path / f"{calls}")
        assert same(trained(**options, checkpoint=tmp_path / f"{calls}", resume=True), whole), calls


def same(left: Any, right: Any) -> bool:
    """Whether two trainings have the same bits."""
    arrays = [[*run.params.values(), *run.state.values()] for run in (left, right)]
    bits = [[array.tobytes() for array in own] for own in arrays]
    return bits[0] == bits[1] and left.history.loss == right.history.loss


@pytest.mark.compiled
def test_shards_that_train_by_themselves_take_the_mean_of_what_they_learn() -> None:
    """Three steps apart, by hand: each half of every batch is a training of its own."""
    data, options = digits(), {"batch_size": 20, "epochs": 1, "shuffle": False, "optimizer": "sgd"}
    got = trained(data={n: a[:40] for n, a in data.items()}, shards=2, average_every=3, **options)
    first = trained(data={n: a[:1] for n, a in data.items()}, lr=1e-30, **options).params  # as it begins
    halves = []
    for half in (0, 10):
        rows = np.concatenate([np.arange(start + half, start + half + 10) for start in (0, 20)])
        own = {name: array[rows] for name, array in data.items()}
        halves.append(trained(data=own, params=first, shards=1, **{**options, "batch_size": 10}))
    for name, array in got.params.items():
        assert np.allclose(array, (halves[0].params[name] + halves[1].params[name]) / 2, 1e-5, 1e-6), name
    assert np.allclose(got.history.loss, np.mean([half.history.loss for half in halves], axis=0), 1e-5)


@pytest.mark.compiled
def test_a_mean_after_every_step_of_plain_descent_is_the_training() -> None:
    options = {"optimizer": "sgd", "batch_size": 10, "lr": 0.5}
    check_equal(trained(shards=2, average_every=1, **options).params, trained(shards=2, **options).params, 1e-5)
    with pytest.raises(AssertionError):  # two steps apart are something else
        check_equal(trained(shards=2, average_every=2, **options).params, trained(shards=2, **options).params, 1e-5)


@pytest.mark.compiled
def test_a_training_by_itself_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """The last batch has two examples for three shards."""
    options = {"shards": 3, "average_every": 3, "batch_size": 8}
    whole = trained(**options)
    trained(**options, epochs=1, checkpoint=tmp_path / "c")
    assert same(trained(**options, checkpoint=tmp_path / "c", resume=True), whole)
    with pytest.raises(ArgumentError, match="its average_every is 3, not 2"):
        trained(**{**options, "average_every": 2}, checkpoint=tmp_path / "c", resume=True)
    with pytest.raises(ArgumentError, match="its average_every is 3, not None"):
        trained(shards=3, batch_size=8, checkpoint=tmp_path / "c", resume=True)


def test_bad_numbers_of_steps_apart() -> None:
    for every in (0, -1, 2.5, True, "2"):
        with pytest.raises(ArgumentError, match="average_every"):
            trained(shards=2, average_every=every)
    with pytest.raises(ArgumentError, match="average_every is for a training in shards"):
        trained(average_every=2)


def test_bad_numbers_of_shards_of_a_training() -> None:
    for shards in (0, -1, 2.5, True, "2"):
        with pytest.raises(ArgumentError, match="shards is a whole number above 0"):
            trained(shards=shards)
