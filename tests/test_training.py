"""ts.fit and ts.step: the same numbers as steps by hand, from any point on, and clear words when something is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.training import checkpoint, progress
from tensorswap.training.history import History
from tensorswap.training.schedule import schedule
from tensorswap.training.shuffle import shuffled

from .daily import LONG, share

MODEL = """
def classifier(X[b,d], W1[h,d], b1[h], W2[c,h], label[b]) -> loss, accuracy:
    Z[b,h] += X[b,d] * W1[h,d]
    Z[b,h] += b1[h]
    H[b,h] = tanh(Z[b,h])
    S[b,c] += H[b,h] * W2[c,h]
    L = log_softmax(S)
    loss -= L[b,label[b]] / size(b)
    guess[b] argmax= S[b,c]
    accuracy += (guess[b] == label[b]) / size(b)
"""
PARAMS = {"W1": "he", "b1": "zeros", "W2": "xavier"}
SIZES = {"h": 12, "c": 3}


@pytest.fixture(scope="module")
def model() -> ts.Program:
    return ts.program(MODEL)


def data(count: int = 100, dtype: str = "float64") -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(5)
    X = numbers.standard_normal((count, 6)).astype(dtype)
    return {"X": X, "label": (X[:, :3]).argmax(axis=1)}


def fit(model: ts.Program, given: Any = None, **options: Any) -> Any:
    usual = {"lr": 0.02, "batch_size": 16, "epochs": 3, "sizes": SIZES, "metrics": ["accuracy"], "progress": False}
    return ts.fit(model, PARAMS, data() if given is None else given, **{**usual, **options})


def check_equal(one: Any, other: Any) -> None:
    """The same bits."""
    assert one.history.loss == other.history.loss
    for kind in ("params", "state"):
        for name, array in getattr(one, kind).items():
            np.testing.assert_array_equal(array, getattr(other, kind)[name], err_msg=name)


OPTIMIZERS = ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adamw", "lion"]
CASES = [("adam", "float64"), *share([("adam", "float32"), *product(OPTIMIZERS, ["float32", "float64"])], 4)]


@pytest.mark.parametrize(("optimizer", "dtype"), CASES)
def test_fit_makes_the_steps_that_step_makes(model: ts.Program, optimizer: str, dtype: str) -> None:
    given = data(70, dtype)
    result = fit(model, given, optimizer=optimizer, epochs=2, seed=4)
    start = {name: np.asarray(a, dtype) for name, a in fit(model, given, epochs=1, lr=1e-30, seed=4).params.items()}
    step = ts.step(model, start, optimizer=optimizer, lr=0.02, metrics=["accuracy"])
    losses = []
    for epoch in range(2):
        rows = shuffled(np.arange(70), 70, 4, epoch)
        for first in range(0, 70, 16):
            batch = rows[first : first + 16]
            losses.append(step(X=given["X"][batch], label=given["label"][batch])["loss"])
    np.testing.assert_allclose(result.history.loss, losses, rtol=1e-4 if dtype == "float32" else 1e-10)
    assert result.params["W1"].dtype == dtype


def test_it_learns_and_tells_how(model: ts.Program) -> None:
    result = fit(model, epochs=25, validation=data(40), clip=5.0, schedule="cosine")
    assert result.history.loss[-1] < 0.4 * result.history.loss[0]
    last = result.history.epochs[-1]
    assert last["validation accuracy"] > 0.9
    assert set(last) == {"epoch", "step", "loss", "accuracy", "validation loss", "validation accuracy"}
    assert History.from_dict(result.history.to_dict()) == result.history


def test_a_second_run_is_the_same(model: ts.Program) -> None:
    check_equal(fit(model, seed=7), fit(model, seed=7))
    assert fit(model, seed=7).history.loss != fit(model, seed=8).history.loss


def test_arrays_of_the_caller_do_not_change(model: ts.Program) -> None:
    given, start = data(), {name: array.copy() for name, array in fit(model, epochs=1).params.items()}
    before = {name: array.copy() for name, array in {**given, **start}.items()}
    ts.fit(model, start, given, lr=0.1, batch_size=16, progress=False)
    for name, array in {**given, **start}.items():
        np.testing.assert_array_equal(array, before[name])


def test_nested_parameters(model: ts.Program) -> None:
    program = ts.program(MODEL.replace("W1", "first_W").replace("b1", "first_b"))
    params = {"first": {"W": "he", "b": "zeros"}, "W2": "xavier"}
    result = ts.fit(program, params, data(), sizes=SIZES, progress=False)
    assert set(result.params) == {"first_W", "first_b", "W2"}


# -- data


def test_data_in_chunks_is_trained_in_order(model: ts.Program) -> None:
    whole = data(96)
    parts = [{name: array[k : k + 32] for name, array in whole.items()} for k in range(0, 96, 32)]
    once = fit(model, parts, shuffle=False)
    check_equal(once, fit(model, whole, shuffle=False))
    assert len(once.history.loss) == 18


def test_a_mapped_file_is_read_as_it_is(model: ts.Program, tmp_path: Path) -> None:
    whole = data(64)
    np.save(tmp_path / "x.npy", whole["X"])
    mapped = {**whole, "X": np.load(tmp_path / "x.npy", mmap_mode="r")}
    check_equal(fit(model, mapped), fit(model, whole))


def test_a_time_axis_may_come_first() -> None:
    program = ts.program("Y[t,b] += X[t,b,d] * W[d]\nloss += (Y[t,b] - T[t,b]) ** 2 / (size(t) * size(b))")
    numbers = np.random.default_rng(1)
    X = numbers.standard_normal((5, 50, 3))
    given = {"X": X, "T": X @ np.array([1.0, -2.0, 0.5])}
    result = ts.fit(program, {"W": np.zeros(3)}, given, lr=0.1, batch_size=10, epochs=40, progress=False)
    np.testing.assert_allclose(result.params["W"], [1, -2, 0.5], atol=0.05)


def test_every_position_is_met_once() -> None:
    for count in (1, 2, 3, 7, 64, 100, 1797):
        orders = [shuffled(np.arange(count), count, 1, epoch) for epoch in (0, 1)]
        assert all(sorted(order) == list(range(count)) for order in orders)
        assert count < 7 or not np.array_equal(*orders)


# -- checkpoints


def test_a_run_goes_on_where_it_stopped(model: ts.Program, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    fit(model, epochs=2, checkpoint=path)
    check_equal(fit(model, epochs=5, checkpoint=path, resume=True), fit(model, epochs=5))


def test_a_run_goes_on_in_the_middle_of_an_epoch(
    model: ts.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, save = tmp_path / "run.safetensors", checkpoint.save
    saved: list[checkpoint.Position] = []

    def save_and_fail(where: Path, what: checkpoint.Checkpoint) -> None:
        save(where, what)
        saved.append(what.position)
        if len(saved) == 10:
            raise RuntimeError("the power failed")

    with monkeypatch.context() as patched:
        patched.setattr("tensorswap.training.fit.AWAY", 0.0)
        patched.setattr(checkpoint, "save", save_and_fail)
        with pytest.raises(RuntimeError, match="power"):
            fit(model, epochs=5, checkpoint=path, checkpoint_seconds=0.0)
    assert saved[-1].epoch == 1
    assert saved[-1].example > 0
    check_equal(fit(model, epochs=5, checkpoint=path, resume=True), fit(model, epochs=5))


KILLED = """
import sys, time
import numpy as np
import tensorswap as ts
from tensorswap.training import fit as module
sys.path.insert(0, sys.argv[2])
from tests.test_training import MODEL, PARAMS, SIZES, data
module.AWAY = 0.01
ts.fit(ts.program(MODEL), PARAMS, data(), lr=0.02, batch_size=16, epochs=int(sys.argv[3]), sizes=SIZES,
       metrics=["accuracy"], progress=False, checkpoint=sys.argv[1], checkpoint_seconds=0.0, resume=True)
print("finished")
"""


def start_run(path: Path, epochs: int) -> subprocess.Popen[str]:
    root = str(Path(__file__).parent.parent)
    command = [sys.executable, "-c", KILLED, str(path), root, str(epochs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=root)


@pytest.mark.parametrize("moments", [50 if LONG else 3])
def test_killed_at_any_moment_it_goes_on_to_the_same_bits(tmp_path: Path, moments: int) -> None:
    assert killed_and_resumed(tmp_path, moments, seed=0)


def killed_and_resumed(folder: Path, moments: int, seed: int) -> int:
    """Kills a run at random moments, lets it finish, and holds it against one that nobody killed; counts the kills."""
    path, epochs = folder / "run.safetensors", 4000
    numbers = np.random.default_rng(seed)
    killed = 0
    for _ in range(moments):
        process = start_run(path, epochs)
        wait_until(path.exists)
        time.sleep(float(numbers.uniform(0, 1.5)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        reached = checkpoint.load(path).position
        assert reached.step > 0
    epochs = checkpoint.load(path).position.epoch + 2
    process = start_run(path, epochs)
    assert "finished" in process.communicate()[0]
    found = checkpoint.load(path)
    whole = fit(ts.program(MODEL), epochs=epochs)
    for name, array in {**whole.params, **whole.state}.items():
        np.testing.assert_array_equal(found.arrays[name], array, err_msg=name)
    return killed


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "nothing happened for two minutes"
        time.sleep(0.01)


def test_control_c_ends_the_run_with_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    process = start_run(path, 10**6)
    wait_until(path.exists)
    process.send_signal(signal.SIGINT)
    assert "finished" in process.communicate(timeout=60)[0]
    assert checkpoint.load(path).position.step > 0


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "text"])
def test_a_damaged_or_foreign_checkpoint_is_refused(model: ts.Program, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "run.safetensors"
    fit(model, epochs=1, checkpoint=path)
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        path.write_bytes(content[:20] + bytes(b ^ 255 for b in content[20:40]) + content[40:])
    elif damage == "text":
        path.write_text("not a checkpoint")
    message = "another training: its batch_size" if damage == "foreign" else "damaged|no checkpoint"
    with pytest.raises(ts.SwapError, match=message):
        fit(model, epochs=2, checkpoint=path, resume=True, **({"batch_size": 8} if damage == "foreign" else {}))


def test_what_cannot_be_written_leaves_the_last_checkpoint(
    model: ts.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.safetensors"
    fit(model, epochs=1, checkpoint=path)
    before = path.read_bytes()

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(ts.SwapWarning, match="No space left"):
        result = fit(model, epochs=2, checkpoint=path, resume=True)
    assert path.read_bytes() == before
    assert result.step == 14  # what has been learned is not lost
    assert list(tmp_path.iterdir()) == [path]


# -- what goes wrong


def test_a_loss_that_is_no_number_names_its_statement() -> None:
    program = ts.program("Z[b] += X[b,d] * W[d]\nY[b] = log(Z[b])\nloss += Y[b] / size(b)")
    given = {"X": np.array([[1.0, 1.0], [1.0, -9.0], [1.0, 1.0]])}
    with pytest.raises(ts.SwapError, match=r"step 2 .* Y\[b=0\] is NaN, first made in statement 2: log\(Z\[b=0\]\)"):
        ts.fit(program, {"W": np.ones(2)}, given, batch_size=1, shuffle=False, lr=1e-3, progress=False)


def bad(model: ts.Program, message: str, params: Any = PARAMS, given: Any = None, **options: Any) -> None:
    with pytest.raises(ts.SwapError, match=message):
        ts.fit(model, params, data() if given is None else given, **{"sizes": SIZES, "progress": False, **options})


def test_mistakes_are_told_before_time_is_wasted(model: ts.Program) -> None:
    whole = data()
    nan = whole["X"].copy()
    nan[7, 2] = np.nan
    bad(model, "W2 is neither among the parameters nor in the data", params={"W1": "he", "b1": "zeros"})
    bad(model, r"no input 'W9' to train", params={**PARAMS, "W9": "zeros"})
    bad(model, "starts as 'hee'", params={**PARAMS, "W1": "hee"})
    bad(model, "size of index h", sizes={"c": 3})
    bad(model, r"X\[7, 2\] is NaN", given={**whole, "X": nan})
    bad(model, "asks for position 5", given={**whole, "label": whole["label"] + 3})
    bad(model, "differ in the number of examples", given={**whole, "label": whole["label"][:-1]})
    bad(model, "holds no example", given={name: array[:0] for name, array in whole.items()})
    bad(model, "no input 'Y'", given={**whole, "Y": whole["X"]})
    bad(model, "X has 1 axes", given={**whole, "X": whole["X"][:, 0]})
    bad(model, "W1 has 1 axes|W1 .*2 axes|has 2", params={**PARAMS, "W1": np.zeros(5)})
    bad(model, "index d has size", params={**PARAMS, "W1": np.zeros((12, 5))})
    bad(model, "batch index 'n'", batch="n")
    bad(model, "no optimiser 'adan'", optimizer="adan")
    bad(model, "adam has no option 'beta'", optimizer={"name": "adam", "beta": 0.9})
    bad(model, "no schedule 'cosin'", schedule="cosin")
    bad(model, "the loss is 'los'", loss="los")
    bad(model, "a metric is 'hits'", metrics=["hits"])
    bad(model, "lr is a positive number", lr=0)
    bad(model, "batch_size is a whole number", batch_size=0)
    bad(model, "epochs is a whole number", epochs=1.5)
    bad(model, "clip is the largest norm", clip=-1)
    bad(model, "there is no checkpoint", resume="nowhere.safetensors")
    bad(model, "resume=True goes on from the checkpoint", resume=True)
    bad(model, "there is no parameter", params={}, given={**whole, "W1": np.ones((12, 6))})


# -- smaller pieces


def test_schedules() -> None:
    steps = np.arange(100.0)
    cosine = schedule({"name": "cosine", "warmup": 10})(steps, 100)
    assert cosine[0] == pytest.approx(0.1)
    assert cosine[10] == pytest.approx(1)
    assert cosine[99] < 0.01
    assert np.all(schedule(None)(steps, 100) == 1)
    assert schedule("step")(steps, 100)[[0, 40, 80]] == pytest.approx([1, 0.1, 0.01])
    assert schedule(lambda step: step / 2)(steps, 100)[4] == 2


def test_progress_is_a_line_for_each_interval_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream = StringIO()
    bar = progress.Progress(100, stream=stream, start=0.0)
    for step in range(0, 101, 5):
        now[0] = step * 0.5
        bar.tell(step, {"loss": 1.25}, last=step == 100)
    lines = stream.getvalue().splitlines()
    assert 4 <= len(lines) <= 8
    assert lines[-1] == "step 100/100  loss 1.25  2 steps/s  0:00 left"
    assert "\r" not in stream.getvalue()


def test_the_first_steps_tell_nothing_of_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """They compile."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream = StringIO()
    bar = progress.Progress(1001, stream=stream, start=0.0)
    for step, seconds in ((1, 30.0), (501, 45.0), (1001, 55.0)):
        now[0] = seconds
        bar.tell(step, {"loss": 1.25}, last=step == 1001)
    told = stream.getvalue().splitlines()
    assert told[0] == "step 1/1001  loss 1.25  the first steps are made"
    assert told[1] == "step 501/1001  loss 1.25  33 steps/s  0:15 left"
    assert told[2] == "step 1001/1001  loss 1.25  40 steps/s  0:00 left"


def test_a_plot_is_drawn(model: ts.Program, tmp_path: Path) -> None:
    fit(model, epochs=2, validation=data(20)).history.plot(tmp_path / "loss.png")
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_a_step_prints_as_a_program(model: ts.Program) -> None:
    step = ts.step(model, PARAMS, sizes={**SIZES, "d": 6}, optimizer="sgd", lr=0.1)
    assert "W1[W1_0,W1_1] = W1[W1_0,W1_1] - lr * W1.grad[W1_0,W1_1]" in str(step.program)
    assert ts.program(str(step.program)) == step.program
    batch = data(20)
    first = step(batch)
    assert step(batch) < first
    assert step.count == 2
    with pytest.raises(ts.SwapError, match="label is missing"):
        step(X=batch["X"])
    assert step.count == 2
