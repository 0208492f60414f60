"""Values made again: which ones a second block computes itself, and that both give what the interpreter gives."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.plan import made_again
from tensorswap.plan.prepare import prepare
from tensorswap.run.arguments import bind

pytestmark = pytest.mark.compiled
R = np.random.default_rng(8)
FORTH = ["a[t,i] = x[i] * H[t,i]", "H[t+1,i] = H[t,i] + a[t,i]"]
BACK = ["G[t,i] = G[t+1,i] * a[t,i] + H[t,i]"]


def blocks(forth: list[str], back: list[str], last: str = "Y[i] = G[0,i]") -> str:
    lines = ["size(t) = 5", "H[0,i] = x[i]", "for t:", *(f"    {s}" for s in forth), "G[size(t),i] = x[i]"]
    return "\n".join([*lines, "for t down:", *(f"    {s}" for s in back), last, "return Y"])


CASES = {  # and what is made again
    "a product": (blocks(FORTH, BACK), {"a"}),
    "one after the other": (
        blocks(["a[t,i] = x[i] * H[t,i]", "b[t,i] = a[t,i-1] + x[i] if i > 0 else 1", "H[t+1,i] = H[t,i] + b[t,i]"],
               ["G[t,i] = G[t+1,i] * a[t,i] + b[t,i] * H[t,i]"]), {"a", "b"}),
    "only for the second": (blocks([FORTH[0], "H[t+1,i] = H[t,i] * 0.5"], BACK), {"a"}),
    "turned round in the second": (blocks(FORTH, ["G[t,i] = G[t+1,i] * a[t,size(i)-1-i] + H[t,i]"]), {"a"}),
    "under another name of the step": (
        blocks(["a[t,i] = x[i] * H[t,i] + t", FORTH[1]], ["G[s,i] = G[s+1,i] * a[s,i] + H[s,i]"])
        .replace("for t down", "for s down").replace("size(t) = 5", "size(t) = 5\nsize(s) = 5"), {"a"}),
    "of another step": (blocks(FORTH, ["G[t,i] = G[t+1,i] * a[size(t)-1-t,i] + H[t,i]"]), set()),
    "asked for in the end": (blocks(FORTH, BACK, "Y[i] = G[0,i] + a[2,i]"), set()),
    "with functions that take no time": (
        blocks(["a[t,i] = min(x[i] * H[t,i], 3) + H[t,i] ** 2", FORTH[1]], BACK), {"a"}),
    "with a function": (blocks(["a[t,i] = exp(-H[t,i] ** 2)", FORTH[1]], BACK), set()),
    "with much arithmetic": (blocks([f"a[t,i] = {' + '.join(['x[i] * H[t,i]'] * 5)} * t", FORTH[1]], BACK), set()),
    "what it is made of is not kept": (blocks(FORTH, ["G[t,i] = G[t+1,i] * a[t,i] + 1"]), set()),
    "under a guard": (blocks(["a[t,i] = x[i] * H[t,i] if t > 1", FORTH[1]], BACK), set()),
    "written twice": (blocks(["a[t,i] += x[i] * H[t,i]", "a[t,i] += 1", FORTH[1]], BACK), set()),
    "a sum": (blocks(["a[t,i] += x[j] * H[t,i]", FORTH[1]], BACK), set()),
    "in a block within": (
        blocks(FORTH, ["G[t,i] = G[t+1,i] * e[t,i] + H[t,i]", "for i:", "    e[t,i] = a[t,i]"][1:] + [BACK[0]]), set()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_made_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, expected = CASES[name]
    monkeypatch.setattr(made_again, "LARGE", 1)
    program = ts.program(text)
    made = {*prepare(bind(program.loops, {"x": np.ones(7)})).loops.written} - {*program.loops.written}
    assert {name.rpartition("_")[0] for name in made} == expected
    for points in (1, 3, 70):
        given = {"x": R.uniform(-0.5, 0.5, points)}
        np.testing.assert_allclose(program(given), program.run_reference(given), rtol=1e-12)


def test_small_ones_are_kept() -> None:
    program = ts.program(blocks(FORTH, BACK))
    assert "a_1" not in prepare(bind(program.loops, {"x": np.ones(7)})).loops.written


def test_the_gradient_of_a_chain_of_differential_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the states of all steps, and nothing else of them."""
    text = """
size(t) = 20
Y[0,i] = 0
for t:
    a[t,i] = x[i] * (Y[t,i-1] if i > 0 else 1)
    b[t,i] = x[i] * (Y[t,i-1] + 0.05 * a[t,i-1] if i > 0 else 1)
    Y[t+1,i] = Y[t,i] + 0.1 * (a[t,i] + b[t,i])
return loss = Y[size(t),size(i)-1]
"""
    monkeypatch.setattr(made_again, "LARGE", 1)
    program = ts.program(text.replace("return loss =", "loss =") + "return loss").grad(wrt=["x"])
    for points in (1, 2, 40, 700):
        x = {"x": R.uniform(0.5, 1, points)}
        found, expected = program(x), program.run_reference(x)
        for one, other in zip(found.values(), expected.values(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    shapes = prepare(bind(program.loops, {"x": np.ones(40)})).sizes.shapes
    kept = {name for name, shape in shapes.items() if len(shape) == 2 and shape[0] > 1}
    assert kept == {"Y"}
