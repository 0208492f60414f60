"""einsum against numpy's own: every form of its string syntax, derivatives, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.einsum import einsum_program, recipe

R = np.random.default_rng(5)

FORMS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ba", [(2, 3)]), ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]), ("ij->", [(2, 3)]), ("->", [()]), (",->", [(), ()]), ("i,->i", [(3,), ()]),
    ("i,j,k", [(2,), (3,), (4,)]), ("hik,hjk->hij", [(2, 3, 4), (2, 5, 4)]), ("iij->j", [(3, 3, 2)]),
    ("...j,jk", [(2, 3, 4), (4, 5)]), ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]), ("...->...", [(2, 3)]),
    ("i...->...", [(2, 3, 4)]), ("...i->...", [(2, 3)]), ("i...,i...->...", [(2, 3), (2, 3)]),
    (" i j , j k -> i k ", [(2, 3), (3, 4)]), ("Ab,bC->AC", [(2, 3), (3, 4)]),
    ("abcd,bdca->c", [(2, 3, 4, 5), (3, 5, 4, 2)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]), ("ij,ij->j", [(5, 2), (1, 2)]), ("i,i", [(3,), (1,)]),
    ("ijk,kl,jl,i->i", [(1, 5, 4), (4, 6), (5, 6), (3,)]), ("...i,i...", [(1, 2), (2, 3)]), ("i,i->", [(1,), (0,)]),
    ("iij,i->j", [(1, 1, 2), (3,)]), ("ij->...ij", [(2, 3)]), ("i...,i...->i", [(2,), (2,)]),
]  # fmt: skip


@pytest.mark.parametrize(("subscripts", "shapes"), FORMS)
def test_forms_equal_numpy(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [R.standard_normal(shape) for shape in shapes]
    result = ts.einsum(subscripts, *arrays)
    expected = np.einsum(subscripts, *arrays)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize(("subscripts", "shapes"), FORMS)
def test_forms_differentiate(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    program = einsum_program(subscripts, tuple(shapes))
    ts.gradcheck(program, {f"A{k}": R.standard_normal(shape) for k, shape in enumerate(shapes)})


NUMBERS = "?bBhHiIlLqQefd"


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_random_calls_equal_numpy(data: st.DataObject) -> None:
    """Sizes 1 that broadcast, ellipses, operands of any type and layout: values, types and strides."""
    full = {c: data.draw(st.integers(0, 3)) for c in "abcdé"}
    terms = data.draw(st.lists(st.lists(st.sampled_from("abcdé"), max_size=4), min_size=1, max_size=3))
    arrays = []
    for term in terms:
        sizes = {c: data.draw(st.sampled_from([full[c], full[c], 1])) for c in term}
        ahead = data.draw(st.sampled_from([(), (), (2,), (1,)]))
        shape = (*ahead, *(sizes[c] for c in term))
        kind = np.dtype(data.draw(st.sampled_from(NUMBERS)))
        numbers = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal(shape) * 9
        array = (abs(numbers) if kind.kind == "u" else numbers).astype(kind)  # CPUs differ in what -3.5 is without sign
        order = data.draw(st.permutations(range(len(shape))))
        arrays.append(array.transpose(order).copy().transpose(np.argsort(order)))
    used = sorted({c for term in terms for c in term})
    output = "".join(data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))])
    text = ",".join("..." + "".join(term) for term in terms) + data.draw(st.sampled_from([f"->...{output}", ""]))
    order = data.draw(st.sampled_from("KCFA"))
    with np.errstate(all="ignore"):
        result = ts.einsum(text, *arrays, order=order)
        expected = np.einsum(text.replace("é", "e"), *arrays, order=order)
    assert result.dtype == expected.dtype
    assert isinstance(result, np.ndarray) == isinstance(expected, np.ndarray)
    if result.size > 1 and 1 not in result.shape:
        assert result.strides == expected.strides
    tolerance = 1e-2 if result.dtype == np.float16 else 1e-4 if result.dtype == np.float32 else 1e-10
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * 100)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", NUMBERS)
def test_kernels_give_numpys_numbers_and_types(dtype: str) -> None:
    with np.errstate(all="ignore"):
        A, B = (R.integers(-9, 9, (3, 4)).astype(dtype) for _ in range(2))
        for text, given in (("ij,kj->ik", (A, B)), ("ij->j", (A,)), ("ij,->i", (A, 3)), ("ij,i", (A, np.arange(3.0)))):
            result, expected = ts.einsum(text, *given), np.einsum(text, *given)
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)


def test_whole_numbers_become_floats_before_they_are_multiplied() -> None:
    large = np.full(2, 2**40)
    np.testing.assert_array_equal(ts.einsum("i,i,i->i", large, large, np.ones(2)), [2.0**80, 2.0**80])


A, B = R.standard_normal((2, 3)), R.standard_normal((3, 4))


def test_sublists() -> None:
    np.testing.assert_allclose(ts.einsum(A, [0, 1], B, [1, 2], [0, 2]), A @ B)
    np.testing.assert_allclose(ts.einsum(A, [..., 7], B, np.array([7, 2])), A @ B)
    np.testing.assert_allclose(ts.einsum(A, (1, 0)), A.T)
    np.testing.assert_allclose(ts.einsum(A, [0, 1], []), A.sum())


def test_any_letter() -> None:
    np.testing.assert_allclose(ts.einsum("αβ,βж->αж", A, B), A @ B)
    np.testing.assert_allclose(ts.einsum("ба", A), A.T)
    np.testing.assert_allclose(ts.einsum("名ß->ß", A + 1j), A.sum(0) + 2j)


def test_out_gets_the_result() -> None:
    out = np.zeros((2, 4), np.float64)
    assert ts.einsum("ij,jk->ik", A, B, out=out) is out
    np.testing.assert_allclose(out, A @ B)
    square = R.standard_normal((3, 3))
    expected = square @ square.T
    np.testing.assert_allclose(ts.einsum("ij,kj->ik", square, square, out=square), expected)
    wide = np.zeros(1)
    ts.einsum("i->i", np.ones(1, np.float32), out=wide)
    assert wide == 1
    every_second = np.zeros((2, 8))[:, ::2]
    np.testing.assert_allclose(ts.einsum("ij,jk->ik", A, B, out=every_second), A @ B)


def test_dtype_and_casting() -> None:
    whole = np.arange(6).reshape(2, 3)
    assert ts.einsum("ij->i", whole, dtype=np.float64).dtype == np.float64
    assert ts.einsum("ij->i", whole, dtype="f4", casting="same_kind").dtype == np.float32
    np.testing.assert_array_equal(ts.einsum("ij->i", whole, dtype=bool, casting="unsafe"), [True, True])
    np.testing.assert_array_equal(ts.einsum("ij->i", A * 300, dtype="i1", casting="unsafe"),
                                  np.einsum("ij->i", A * 300, dtype="i1", casting="unsafe"))  # fmt: skip


def test_views_share_memory() -> None:
    square = np.zeros((3, 3))
    ts.einsum("ii->i", square)[:] = 1
    np.testing.assert_array_equal(square, np.eye(3))
    square.flags.writeable = False
    assert not ts.einsum("ji", square).flags.writeable


def test_optimize_changes_nothing() -> None:
    C = R.standard_normal((4, 5))
    path = np.einsum_path("ij,jk,kl->il", A, B, C)[0]
    for optimize in (None, False, True, "greedy", "optimal", ("greedy", 100), path, np.True_):
        np.testing.assert_allclose(ts.einsum("ij,jk,kl->il", A, B, C, optimize=optimize), A @ B @ C)


@pytest.mark.parametrize(
    ("given", "settings", "kind", "message"),
    [
        ((), {}, ValueError, "needs subscripts"),
        ((0, 0), {}, TypeError, "text or lists"),
        ((A, [0, "x"]), {}, TypeError, "no label"),
        ((A, [0, 52]), {}, ValueError, "52 is not in 0..51"),
        (("ij", A), {"order": "W"}, ValueError, "order is 'W'"),
        (("ij", A), {"casting": "x"}, ValueError, "casting is 'x'"),
        (("ij->", A), {"dtype": "bad"}, TypeError, "dtype is 'bad'"),
        (("ij->", A), {"dtype": "i4"}, TypeError, "operand 0 is float64"),
        (("ij->", A), {"out": "x"}, TypeError, "out is an array"),
        (("ij->i", A), {"out": np.zeros((2, 1))}, ValueError, "out has 2 axes"),
        (("ij->i", A), {"out": np.zeros(3)}, ValueError, "shape"),
        (("ij->i", A), {"out": np.zeros(2, int)}, TypeError, "the result is float64"),
        (("ij->i", A), {"out": np.broadcast_to(0.0, 2)}, ValueError, "read-only"),
        (("ij->i", A), {"optimize": "fast"}, ValueError, "optimize"),
        (("ij->i", A), {"optimize": 3}, TypeError, "optimize"),
        (("ij,jk->ik", A, B), {"optimize": ["einsum_path", (0, 2)]}, RuntimeError, "does not fit 2 operands"),
        (("ij,jk->ik", A, B), {"optimize": ["einsum_path", (0,)]}, RuntimeError, "leaves 2"),
        (("ij->i", np.array([["a"]])), {}, TypeError, "does not compute with"),
        (("i->", np.ma.masked_array([1.0, 2.0], [True, False])), {}, TypeError, "mask"),
    ],
)
def test_settings_are_refused_as_numpy_refuses_them(
    given: tuple[Any, ...], settings: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(ts.SwapError, match=message) as caught:
        ts.einsum(*given, **settings)
    assert isinstance(caught.value, kind)


def test_a_second_call_parses_and_builds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ts.einsum("pq,qr->pr", A, B)
    monkeypatch.setattr(recipe, "parse_subscripts", None)
    monkeypatch.setattr(recipe, "program", None)
    np.testing.assert_allclose(ts.einsum("pq,qr->pr", 2 * A, B), 2 * A @ B)


GRADIENTS = [
    ("ij,jk->ik", [(2, 3), (3, 4)], {}), ("ij,jk->ik", [(2, 1), (3, 4)], {}), ("ij->ji", [(2, 3)], {}),
    ("...i,i...->i", [(3,), (3,)], {}), ("ii->i", [(3, 3)], {}), ("ij,jk->ik", [(2, 3), (3, 4)], {"order": "F"}),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)], {"optimize": True}), ("ij,ij->", [(2, 3), (2, 3)], {"dtype": "f8"}),
]  # fmt: skip


@pytest.mark.compiled
@pytest.mark.parametrize(("subscripts", "shapes", "settings"), GRADIENTS)
def test_gradients_against_differences(
    subscripts: str, shapes: list[tuple[int, ...]], settings: dict[str, Any]
) -> None:
    arrays = [R.standard_normal(shape) for shape in shapes]
    seed = R.standard_normal(np.einsum(subscripts, *arrays).shape)
    tensors = [ts.tensor(array) for array in arrays]
    np.einsum(subscripts, *tensors, **settings).backward(seed)
    for k, (array, tensor) in enumerate(zip(arrays, tensors, strict=True)):
        for place in np.ndindex(array.shape):
            step = np.zeros(array.shape)
            step[place] = 1e-6
            up, down = (np.einsum(subscripts, *arrays[:k], array + s, *arrays[k + 1 :]) for s in (step, -step))
            np.testing.assert_allclose(tensor.grad[place], (seed * (up - down)).sum() / 2e-6, rtol=1e-6, atol=1e-7)


def test_gradients_of_the_other_form_and_of_other_types() -> None:
    x, y = ts.tensor(A.astype(np.float32)), ts.tensor(B)
    product = ts.einsum(x, [0, 1], y, [1, 2], [0, 2])
    assert product.dtype == np.float64
    product.backward(np.ones((2, 4)))
    assert x.grad.dtype == np.float32
    np.testing.assert_allclose(x.grad, np.broadcast_to(B.sum(1), (2, 3)), rtol=1e-6)
    x = ts.tensor(A.astype(np.float32))
    assert ts.einsum(",ij->ij", 2.0, x).dtype == np.float32  # plain numbers never widen a tensor
    with pytest.raises(ts.SwapError, match="no gradient"):
        ts.einsum("ij->", x, dtype=complex)
    with pytest.raises(ts.SwapError, match="out"):
        ts.einsum("ij->i", x, out=np.zeros(2))


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3), (4, 5)], "index 'j' has size 3 on operand 0, 4 on operand 1"),
        ("ii->i", [(1, 3)], "index 'i' has size 1 on operand 0, 3 on operand 0"),
        ("ij,jk->ii", [(2, 3), (3, 5)], "stands twice in the output"),
        ("ij->k", [(2, 3)], "stands in no term"),
        ("ij", [(2, 3), (3, 4)], "names 1 operands, but 2"),
        ("ijk", [(2, 3)], "has 2 axes"),
        ("i$j", [(2, 3)], "is not a label"),
        ("...i...", [(2, 3)], "is not a label"),
        ("i->j->k", [(2,)], "is not a label"),
        ("...ab", [(3,)], "fewer than"),
        ("...i,...i->...i", [(2, 3), (4, 3)], "do not broadcast"),
        ("...a,...a->a", [(4, 3), (4, 3)], "lacks `...`"),
    ],
)
def test_refusals_name_the_fault(subscripts: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ts.SwapError, match=message):
        ts.einsum(subscripts, *(np.ones(shape) for shape in shapes))


def test_types_are_kept() -> None:
    assert ts.einsum("i,i->i", np.ones(3, np.float32), np.ones(3, np.float32)).dtype == np.float32


@pytest.mark.compiled
def test_calls_with_the_same_text_take_a_shortcut() -> None:
    """Like the last one or not, each gives what numpy's function gives."""
    from tensorswap.einsum import shortcut

    numbers = np.random.default_rng(0)
    kinds: list[Any] = [
        lambda *shape: numbers.standard_normal(shape),
        lambda *shape: numbers.standard_normal(shape).astype(np.float32),
        lambda *shape: numbers.standard_normal(shape[::-1]).T,
        lambda *shape: numbers.integers(-9, 9, shape),
        lambda *shape: numbers.integers(-9, 9, shape).astype(np.int8),
        lambda *shape: numbers.standard_normal(shape) > 0,
        lambda *shape: numbers.standard_normal(shape).tolist(),
        lambda *shape: numbers.standard_normal(shape) * 1j,
        lambda *shape: numbers.standard_normal(shape).astype(np.float16),
    ]
    for text, shapes in {"ij,jk->ik": [(3, 4), (4, 5)], "ij,ij->": [(3, 4)] * 2, "ij->ji": [(3, 4)]}.items():
        for kind in [*(k for k in kinds for _ in range(4)), *kinds, *kinds[::-1]]:
            given = [kind(*shape) for shape in shapes]
            found, expected = ts.einsum(text, *given), np.einsum(text, *given)
            assert type(found) is type(expected)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=2e-2 if expected.dtype == np.float16 else 1e-5, atol=1e-6)
    A, B = numbers.standard_normal((3, 4)), numbers.standard_normal((4, 5))
    for _ in range(4):
        ts.einsum("ij,jk->ik", A, B)
    np.testing.assert_array_equal(shortcut.taken(("ij,jk->ik", A, B)), ts.einsum("ij,jk->ik", A, B))
    for wrong in ((A, B, B), (A,), (A, B[:3]), (A[:, :3], B), (A, "text"), ()):
        assert shortcut.taken(("ij,jk->ik", *wrong)) is None
        with pytest.raises(ts.SwapError):
            ts.einsum("ij,jk->ik", *wrong)
    assert ts.einsum("ij,jk->ik", A, B, dtype=np.float32, casting="same_kind").dtype == np.float32
    np.testing.assert_allclose(ts.einsum("ij,jk->ik", ts.tensor(A), B).value, A @ B)
