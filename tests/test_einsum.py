"""einsum against numpy's own: every form of its string syntax, derivatives, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.einsum import einsum_program

R = np.random.default_rng(5)

FORMS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ba", [(2, 3)]), ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]), ("ij->", [(2, 3)]), ("->", [()]), (",->", [(), ()]), ("i,->i", [(3,), ()]),
    ("i,j,k", [(2,), (3,), (4,)]), ("hik,hjk->hij", [(2, 3, 4), (2, 5, 4)]), ("iij->j", [(3, 3, 2)]),
    ("...j,jk", [(2, 3, 4), (4, 5)]), ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]), ("...->...", [(2, 3)]),
    ("i...->...", [(2, 3, 4)]), ("...i->...", [(2, 3)]), ("i...,i...->...", [(2, 3), (2, 3)]),
    (" i j , j k -> i k ", [(2, 3), (3, 4)]), ("Ab,bC->AC", [(2, 3), (3, 4)]),
    ("abcd,bdca->c", [(2, 3, 4, 5), (3, 5, 4, 2)]),
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


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_random_equations_equal_numpy(data: st.DataObject) -> None:
    extents = {c: data.draw(st.integers(1, 3)) for c in "abcde"}
    terms = data.draw(st.lists(st.text("abcde", max_size=4), min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    output = data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))]
    arrays = [R.standard_normal([extents[c] for c in term]) for term in terms]
    subscripts = ",".join(terms) + data.draw(st.sampled_from(["->" + "".join(output), ""]))
    np.testing.assert_allclose(ts.einsum(subscripts, *arrays), np.einsum(subscripts, *arrays), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3), (4, 5)], "index j has size 3 on A0"),
        ("ij,jk->ik", [(2, 3), (1, 5)], "index j"),
        ("ij,jk->ii", [(2, 3), (3, 5)], "stands twice in the output"),
        ("ij->k", [(2, 3)], "stands in no term"),
        ("ij", [(2, 3), (3, 4)], "names 1 operands, but 2"),
        ("ijk", [(2, 3)], "has 2 axes"),
        ("i$j", [(2, 3)], "not an index label"),
        ("...i...", [(2, 3)], "not an index label"),
        ("i->j->k", [(2,)], "not an index label"),
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
