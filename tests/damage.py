"""Damage to files, by a seed: flipped bits, cuts, blocks swapped or zeroed. A reader of such a file may refuse it, or
find that nothing it reads has changed; it may not believe it, raise anything else, or crash.

`kernels_survive` and `checkpoints_survive` do as many damages as they are asked for; a longer run calls the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tensorswap as ts
from tensorswap.errors import SwapError
from tensorswap.run import cache
from tensorswap.training import checkpoint, tensorfile

Numbers = np.random.Generator
Damage = Callable[[bytes, Numbers], bytes]
HEAD = 256  # bytes in which formats keep what is believed first


def flip(content: bytes, numbers: Numbers, within: int | None = None) -> bytes:
    """One bit."""
    place = int(numbers.integers(min(len(content), within or len(content))))
    return content[:place] + bytes([content[place] ^ (1 << int(numbers.integers(8)))]) + content[place + 1 :]


def flip_in_head(content: bytes, numbers: Numbers) -> bytes:
    return flip(content, numbers, HEAD)


def overwrite(content: bytes, numbers: Numbers) -> bytes:
    """A few bytes with others."""
    start, length = _block(content, numbers, 64)
    return content[:start] + numbers.bytes(length) + content[start + length :]


def zero(content: bytes, numbers: Numbers) -> bytes:
    """A block, as a page that never reached the disk."""
    start, length = _block(content, numbers, 4096)
    return content[:start] + bytes(length) + content[start + length :]


def cut(content: bytes, numbers: Numbers) -> bytes:
    return content[: int(numbers.integers(len(content)))]


def cut_start(content: bytes, numbers: Numbers) -> bytes:
    return content[int(numbers.integers(1, len(content))) :]


def append(content: bytes, numbers: Numbers) -> bytes:
    return content + numbers.bytes(int(numbers.integers(1, 100)))


def insert(content: bytes, numbers: Numbers) -> bytes:
    place = int(numbers.integers(len(content)))
    return content[:place] + numbers.bytes(int(numbers.integers(1, 9))) + content[place:]


def remove(content: bytes, numbers: Numbers) -> bytes:
    start, length = _block(content, numbers, 64)
    return content[:start] + content[start + length :]


def swap(content: bytes, numbers: Numbers) -> bytes:
    """Two blocks of one length change places."""
    length = int(numbers.integers(1, max(len(content) // 4, 2)))
    first = int(numbers.integers(0, max(len(content) // 2 - length, 1)))
    second = int(numbers.integers(first + length, max(len(content) - length, first + length + 1)))
    one, other = content[first : first + length], content[second : second + length]
    return content[:first] + other + content[first + length : second] + one + content[second + length :]


def change_digit(content: bytes, numbers: Numbers) -> bytes:
    """A digit of a text for another one: numbers in headers stay numbers."""
    digits = [k for k, byte in enumerate(content[: 64 * HEAD]) if 48 <= byte <= 57]
    if not digits:
        return flip(content, numbers)
    place = digits[int(numbers.integers(len(digits)))]
    return content[:place] + b"%d" % ((content[place] - 48 + int(numbers.integers(1, 10))) % 10) + content[place + 1 :]


def replace_all(content: bytes, numbers: Numbers) -> bytes:
    return numbers.bytes(int(numbers.integers(0, 500)))


DAMAGES: tuple[Damage, ...] = (
    flip, flip_in_head, overwrite, zero, cut, cut_start, append, insert, remove, swap, change_digit, replace_all,
)  # fmt: skip


def damaged(content: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """So many damages to a content, each with words that tell it again; each kind in turn."""
    for number in range(count):
        numbers = np.random.default_rng([seed, number])
        damage = DAMAGES[number % len(DAMAGES)]
        made = damage(content, numbers)
        if made != content:
            yield f"{damage.__name__}, seed {seed}, number {number}", made


def _block(content: bytes, numbers: Numbers, longest: int) -> tuple[int, int]:
    start = int(numbers.integers(len(content)))
    return start, min(int(numbers.integers(1, longest)), len(content) - start)


def kernels_survive(count: int, seed: int) -> int:
    """Damages a kernel in the cache that is in use: what is loaded is that kernel or nothing. Tells how many it did."""
    key, made = f"damage_{seed}", cache.ObjectCode("damage", {"damage": b"code" * 300})
    cache.save(key, made)
    place = cache.folder()
    assert place is not None
    path = place / f"{key}.kernel"
    assert cache.load(key, ()) == made
    done = 0
    for told, content in damaged(path.read_bytes(), count, seed):
        path.write_bytes(content)
        assert cache.load(key, ()) is None, told
        done += 1
    cache.save(key, made)
    assert cache.load(key, ()) == made
    path.unlink()
    return done


# -- checkpoints

VALUES: tuple[Any, ...] = (
    -1, 0, 1, 7, 2**31, 2**53, 2**63, 10**30, 0.5, 1e308, float("nan"), "", "text", None, True, [], {}, [1], {"a": 1},
)  # fmt: skip
Edit = Callable[[dict[str, Any], dict[str, str], Numbers], None]


def edit_field(arrays: dict[str, Any], told: dict[str, str], numbers: Numbers) -> None:
    """Another value for something that is told as JSON."""
    part = ("position", "position", "settings", "history")[int(numbers.integers(4))]
    fields = json.loads(told[part])
    name = str(numbers.choice(list(fields)))
    fields[name] = VALUES[int(numbers.integers(len(VALUES)))]
    told[part] = json.dumps(fields)


def drop_field(arrays: dict[str, Any], told: dict[str, str], numbers: Numbers) -> None:
    part = str(numbers.choice(["position", "settings", "history"]))
    fields = json.loads(told[part])
    fields.pop(str(numbers.choice(list(fields))))
    told[part] = json.dumps(fields)


def add_field(arrays: dict[str, Any], told: dict[str, str], numbers: Numbers) -> None:
    part = str(numbers.choice(["position", "history"]))
    told[part] = told[part][:-1] + ', "further": 1}'


def edit_text(arrays: dict[str, Any], told: dict[str, str], numbers: Numbers) -> None:
    """Something else in the place of JSON or of the program."""
    part = str(numbers.choice(["program", "position", "settings", "history", "format"]))
    texts = ("", "null", "[]", "1", "{", '{"a": 1, "a": 2}', "[" * 10**5, '{"a":' * 10**5, "1" * 10**4, "\x00")
    told[part] = texts[int(numbers.integers(len(texts)))]


def drop_text(arrays: dict[str, Any], told: dict[str, str], numbers: Numbers) -> None:
    del told[str(numbers.choice(list(told)))]


def edit_array(arrays: dict[str, Any], told: dict[str, str], numbers: Numbers) -> None:
    """Another type, shape or name of a tensor."""
    name = str(numbers.choice(list(arrays)))
    array = arrays.pop(name)
    choices = (
        {name: array.astype("f4" if array.dtype == np.float64 else "f8")}, {name: array.reshape(-1)[:-1]}, {},
        {name: array[None]}, {f"{name} more": array}, {name: array, "further": array}, {name: array.reshape(-1)[:0]},
    )  # fmt: skip
    arrays |= choices[int(numbers.integers(len(choices)))]


EDITS: tuple[Edit, ...] = (edit_field, edit_field, drop_field, add_field, edit_text, drop_text, edit_array)


def edited(content: bytes, count: int, seed: int, scratch: Path) -> Iterator[tuple[str, bytes]]:
    """So many checkpoints that someone has changed with a right checksum."""
    for number in range(count):
        numbers = np.random.default_rng([seed, number])
        scratch.write_bytes(content)
        arrays, told = tensorfile.read(scratch)
        edit = EDITS[number % len(EDITS)]
        edit(arrays, told, numbers)
        if "checksum" in told:
            told["checksum"] = checkpoint.checksum(arrays, told)
        tensorfile.write(scratch, arrays, told)
        yield f"{edit.__name__}, seed {seed}, number {number}", scratch.read_bytes()


def small_training(**options: Any) -> Any:
    """Six steps, or more."""
    program = ts.program("Y[b] += X[b,d] * W[d]\nloss += (Y[b] - t[b]) ** 2 / size(b)")
    X = np.random.default_rng(0).standard_normal((20, 3))
    data = {"X": X, "t": X @ np.array([1.0, -2.0, 3.0])}
    usual: dict[str, Any] = {"batch_size": 8, "epochs": 2, "progress": False, "lr": 0.1}
    return ts.fit(program, {"W": np.zeros(3)}, options.pop("data", data), **{**usual, **options})


def checkpoints_survive(folder: Path, count: int, seed: int) -> int:
    """Damages a checkpoint in every way: loading refuses it or finds it unchanged; a training that goes on from it
    raises SwapError or runs to its end. Tells how many it did."""
    path = folder / "run.safetensors"
    small_training(checkpoint=path)
    content = path.read_bytes()
    whole = repr_of(checkpoint.load(path))
    done = 0
    for told, changed in damaged(content, count // 2, seed):
        path.write_bytes(changed)
        found = attempt(checkpoint.load, path, told)
        assert found is None or repr_of(found) == whole, told
        done += 1
    for told, changed in edited(content, count - count // 2, seed, path.with_name("scratch")):
        path.write_bytes(changed)
        attempt(lambda found: small_training(resume=found, epochs=3), path, told)
        done += 1
    path.write_bytes(content)
    assert small_training(resume=path, epochs=3).history == small_training(epochs=3).history
    return done


def attempt(call: Callable[[Path], Any], path: Path, told: str) -> Any:
    """What a call gives, or None if it refuses in words of a fair length."""
    try:
        return call(path)
    except SwapError as error:
        message = str(error)
    assert len(message) < 1000, told
    return None


def repr_of(found: checkpoint.Checkpoint) -> tuple[Any, ...]:
    """All of a checkpoint, to be compared."""
    arrays = sorted((n, a.dtype.name, a.shape, a.tobytes()) for n, a in found.arrays.items())
    return found.program, dict(found.settings), found.position, repr(found.history), arrays
