"""Damage to files, by a seed: flipped bits, cuts, blocks swapped or zeroed. A reader of such a file may refuse it, or
find that nothing it reads has changed; it may not believe it, raise anything else, or crash.

`kernels_survive` and `checkpoints_survive` do as many damages as they are asked for; a longer run calls the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tensorswap.run import cache

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
    source, made = f"damage {seed}", cache.ObjectCode(cache.symbol(f"damage {seed}"), b"code" * 300, b"bits" * 90)
    cache.save(source, made)
    place = cache.folder()
    assert place is not None
    path = place / f"{cache.key(source)}.kernel"
    assert cache.load(source) == made
    done = 0
    for told, content in damaged(path.read_bytes(), count, seed):
        path.write_bytes(content)
        assert cache.load(source) is None, told
        done += 1
    cache.save(source, made)
    assert cache.load(source) == made
    path.unlink()
    return done
