"""`tensorswap train`: what it leaves behind, where it goes on, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tensorswap.command import train

from .running_command import Command

pytestmark = pytest.mark.compiled


TINY = ("train", "logistic_regression", "--batch-size", "479")  # three steps for each pass over the digits


def test_train_leaves_parameters_plot_and_summary(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    output = command.prints(*TINY, "--epochs", "1", "--out", str(out))
    assert sorted(path.name for path in out.iterdir()) == ["checkpoint.safetensors", "loss.png", "summary.json"]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["model"] == "logistic_regression"
    assert (summary["parameters"], summary["steps"]) == (650, 3)
    assert 0 < summary["validation loss"] < 2.303  # what guessing among ten digits would cost
    told = [f"{name}: {value}" for name, value in summary.items()]
    assert output.splitlines() == [*told, f"parameters, plot and summary are in {out}"]
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert load_file(out / "checkpoint.safetensors")["W"].shape == (10, 64)


def test_train_goes_on_where_it_stopped(command: Command, tmp_path: Path) -> None:
    halves, whole = tmp_path / "halves", tmp_path / "whole"
    command.prints(*TINY, "--epochs", "1", "--out", str(halves))
    half = load_file(halves / "checkpoint.safetensors")
    command.prints(*TINY, "--epochs", "2", "--out", str(halves), "--resume")
    command.prints(*TINY, "--epochs", "2", "--out", str(whole))
    assert json.loads((halves / "summary.json").read_text())["steps"] == 6
    found, wanted = (load_file(folder / "checkpoint.safetensors") for folder in (halves, whole))
    np.testing.assert_array_equal(found["W"], wanted["W"])
    assert not np.array_equal(found["W"], half["W"])
    message = command.refuses(*TINY, "--epochs", "3", "--out", str(halves), "--resume", "--seed", "1")
    assert "is of another training: its seed is 0, not 1" in message


def test_train_uses_its_own_folder(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And tells by its exit code that it was ended early."""

    def ended_early(*arguments: Any, **options: Any) -> Any:
        return replace(fit(*arguments, **options), interrupted=True)

    fit = train.fit
    monkeypatch.setattr(train, "fit", ended_early)
    monkeypatch.chdir(tmp_path)
    code, _, _ = command(*TINY, "--epochs", "1", "--lr", "0.2")
    assert code == 130
    assert (tmp_path / "runs" / "logistic_regression" / "summary.json").is_file()


def test_train_on_data_from_a_file(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    generator = np.random.default_rng(0)
    x = generator.standard_normal((200, 64)).astype(np.float32)
    np.savez(path, x=x, label=(x[:, 0] > 0).astype(np.int64))
    command.prints("train", "logistic_regression", "--data", str(path), "--epochs", "1", "--batch-size", "60", "--out",
                   str(tmp_path / "run"))  # fmt: skip
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["parameters"], summary["steps"]) == (130, 3)  # a tenth of the examples is for validation


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text("the quick brown fox jumps over the lazy dog. " * 30)
    return path


def test_train_a_character_model(command: Command, book: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    settings = ("--set", "width=4", "--set", "length=8", "--batch-size", "2", "--seed", "-1")
    output = command.prints("train", "lstm", "--text", str(book), "--iterations", "2", *settings, "--sample", "25",
                            "--out", str(out))  # fmt: skip
    assert json.loads((out / "summary.json").read_text())["steps"] == 2
    _, _, written = output.partition(f"parameters, plot and summary are in {out}\n")
    assert len(written) == 25 + 1
    assert set(written) <= {*book.read_text(), "\n"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mpl"], "there is no model 'mpl'\n  did you mean `mlp`?"),
        (["mlp", "--set", "widht=3"], "the model mlp has no setting 'widht'\n  did you mean `width`?"),
        (["mlp", "--set", "width"], "--set takes NAME=NUMBER, not 'width'"),
        (["mlp", "--set", "width=wide"], "--set takes NAME=NUMBER, not 'width=wide'"),
        (["mlp", "--set", "width=0"], "width is a whole number of 1 or more, not 0"),
        (["mlp", "--text", "BOOK"], "--text is for the models gpt, lstm; mlp does not read it\n  its arrays come from"),
        (["cnn", "--iterations", "5"], "--iterations is for the models gpt, lstm; cnn does not read it\n  --epochs"),
        (["mlp", "--sample", "0"], "--sample is for the models gpt, lstm; mlp does not read it"),
        (["gpt", "--text", "BOOK", "--epochs", "2"], "gaussian_mixture; gpt does not read it\n  --iterations says"),
        (["lstm", "--text", "BOOK", "--data", "x.npz"], "--data is for the models logistic_regression, mlp, cnn, "),
        (["mlp", "--epochs", "0"], "--epochs is a whole number of 1 or more, not 0"),
        (["mlp", "--batch-size", "0"], "--batch-size is a whole number of 1 or more, not 0"),
        (["gpt", "--text", "BOOK", "--iterations", "0"], "--iterations is a whole number of 1 or more, not 0"),
        (["gpt", "--text", "BOOK", "--sample", "-1"], "--sample is a whole number of 0 or more, not -1"),
        (["gpt", "--text", "BOOK", "--set", "length=0"], "length is a whole number of 1 or more, not 0"),
        (["gpt", "--text", "BOOK", "--set", "length=9999"], "too few for windows of 9999"),
        (["gpt"], "a character model learns from a text\n  --text FILE"),
        (["gpt", "--text", "none.txt"], "none.txt cannot be read"),
        (["matrix_factorization"], "matrix_factorization has no data of its own\n  --data FILE.npz"),
        (["mlp", "--data", "none.npz"], "none.npz cannot be read"),
        (["mlp", "--data", "BOOK"], "book.txt cannot be read"),
        (["mlp", "--data", "ONE.npy"], "one.npy holds no arrays with names\n  give a file that np.savez wrote"),
        (["mlp", "--data", "TORN.npz"], "torn.npz cannot be read"),
        (["mlp", "--lr", "nan"], "lr is a positive number, not nan"),
    ],
)  # fmt: skip
def test_train_refuses(command: Command, book: Path, tmp_path: Path, words: list[str], message: str) -> None:
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04 and no more")
    files = {"BOOK": book, "ONE.npy": tmp_path / "one.npy", "TORN.npz": tmp_path / "torn.npz"}
    out = tmp_path / "run"
    told = command.refuses("train", *(str(files.get(word, word)) for word in words), "--out", str(out))
    assert message in told
    assert not out.exists()
