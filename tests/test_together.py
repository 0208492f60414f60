"""Statements of a strip or a step that share one loop compute what they compute one after the other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tensorswap as ts

pytestmark = pytest.mark.compiled

R = np.random.default_rng(6)
x, z, s = R.standard_normal((7, 9)), R.standard_normal((7, 9, 4)), 0.7

STEPS = [
    "A[t,i] = exp(x[t,i])\nB[t,i] = exp(x[t,i]) + A[t,i] * H[t,i]",
    "A[t,i] = exp(H[t,i])\nB[t,i] = (A[t,i-1] if i > 0 else 0)",  # another point's element
    "A[t,i] = exp(H[t,i])\nB[t,i] = A[t,8-i]",
    "A[t,i] = exp(x[t,8-i])\nB[t,i] = H[t,i] - H[t,8-i] + A[t,i]",
    "B[t,i] = exp(x[t,i])\nl -= exp(x[t,i]) * H[t,i]\nl += exp(x[t,i])",  # two sums into one element
    "B[t,i] = exp(x[t,i])\nl += exp(H[t,i])\nm max= exp(H[t,i])\nr[t] *= exp(H[t,i]) / 2",
    "l += exp(H[t,i])\nB[t,i] = exp(H[t,i]) + l",  # what the loop adds up is read by all of its points
    "A[t,i] += exp(x[t,i])\nA[t,i] += exp(H[t,i]) * 2\nB[t,i] = exp(A[t,i]) - exp(A[t,i]) / 2",
    "A[t,i,j] = exp(z[t,i,j])\nC[t,j,i] = A[t,i,j] + 1\nB[t,i] = x[t,i]",
    "A[t,i,j] = exp(z[t,i,j]) * H[t,i]\nC[t,i,j] = A[t,i,j] + exp(z[t,i,j])\nB[t,i] += C[t,i,j]",
    "k[t] = x[t,0] * 2\nq[t] = k[t] + x[t,1]\nB[t,i] = H[t,i] * q[t]",
    "A[t,i] += H[t,i] if t > 2\nA[t,i] += exp(x[t-1,i]) if t > 0\nl += exp(x[t-1,i]) if t > 0\nB[t,i] = A[t,i]",
    "A[t,i] = floor(4 * x[t,i])\nB[t,i] = A[t,i] // 3 + A[t,i] % 3",
]
NEXT = "H[t+1,i] = tanh(H[t,i] + x[t,i]) * s"


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["up", "down", "behind"])
def test_a_step(steps: str, dtype: Any, order: str) -> None:
    lines = [NEXT, *steps.split("\n")] if order != "behind" else [*steps.split("\n"), NEXT]
    if order == "down":
        turned = {"H[t,": "H[t+1,", "H[t+1,": "H[t,"}
        lines = [re.sub(r"H\[t(\+1)?,", lambda found: turned[found[0]], line) for line in lines]
    body = "\n".join(f"    {line}" for line in lines)
    start = "size(H, 0) = size(t) + 1\nfor t down:" if order == "down" else "for t:"
    program = ts.program(f"{start}\n{body}\nY[i] += B[t,i]")
    arrays = {"x": x.astype(dtype), "z": z.astype(dtype), "s": dtype(s)}
    given = {name: arrays[name] for name in program.inputs}
    found, wanted = program(given), program.run_reference(given)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for name, value in (wanted if isinstance(wanted, dict) else {"": wanted}).items():
        result = found[name] if isinstance(found, dict) else found
        np.testing.assert_allclose(result, value, rtol=tolerance, atol=tolerance, err_msg=name)


def test_one_loop_and_each_value_once() -> None:
    text = "for t:\n    H[t+1,i] = exp(x[t,i]) + H[t,i] / 2\n    A[t,i] = exp(x[t,i]) * H[t+1,i]\nY[i] += A[t,i]"
    source = ts.program(text).source(x=x)
    (loop,) = [part for part in source.split("@compiled") if "# a" in part and "exp_f8(" in part]
    assert loop.count("exp_f8(") == 1


TURN = """
d[a,n] = P[n,a] - c[a]
r[n] = sqrt(d[0,n] ** 2 + d[1,n] ** 2 + d[2,n] ** 2 + 1)
C[n] = cos(r[n])
S[n] = sin(r[n])
u[a,n] = d[a,n] / r[n]
"""
STRIPS = {
    "components": TURN + "Y[n,a] = u[a,n] * C[n] + d[a,n] * S[n]",
    "sums of components": TURN + "w[n] += u[a,n] * d[a,n]\nw[n] -= S[n] * d[a,n]\nY[n] = w[n] * C[n]",
    "components of components": TURN + "M[a,b,n] = u[a,n] * d[b,n] + C[n]\nY[n,a] += M[a,b,n] * S[n]",
    "a sum of all": TURN + "l += u[a,n] * C[n]\nl -= S[n]\nY[n] = C[n]",
    "for each component a sum of all": TURN + "g[a] += u[a,n] * S[n]\nY[n] = C[n]",
    "neighbours": TURN + "v[a,n] = u[a,n] * S[n]\nY[n] = v[0,n] + (v[1,n-1] if n > 0 else 0)",
    "a component elsewhere": TURN + "v[a,n] = u[2-a,n] * C[n]\nY[n] = v[0,n] - v[2,n] * S[n]",
    "which component": TURN + "v[a,n] = u[a,n] if a != 1 else S[n]\nY[n] += v[a,n] * C[n]",
    "values decide": TURN + "v[a,n] = (u[a,n] if C[n] > 0 else 2 * d[a,n])\nY[n] += v[a,n] * S[n]",
    "rows that are gathered": TURN + "t[a,n] = T[k[n],a]\nY[n] += t[a,n] * u[a,n] * C[n]",
    "what is slow stays apart": TURN + "q[n] = atan2(S[n], C[n] + 2)\nY[n] = q[n] * r[n]",
    "the greatest component": TURN + "m[n] max= u[a,n] * C[n]\nY[n] = m[n] - S[n]",
    "written in parts": TURN + "v[0,n] += S[n]\nv[1,n] += C[n]\nv[1,n] += u[2,n]\nv[2,n] += r[n]\nY[n] += v[a,n] ** 2",
}  # fmt: skip


@pytest.mark.parametrize("name", STRIPS)
@pytest.mark.parametrize("count", [1, 2, 37, 700])
def test_a_strip_of_points_with_components(name: str, count: int) -> None:
    program = ts.program(STRIPS[name])
    given = {"P": R.standard_normal((count, 3)), "c": R.standard_normal(3)}
    if "T" in program.inputs:
        given |= {"T": R.standard_normal((5, 3)), "k": R.integers(0, 5, count)}
    of = list(program.outputs)
    derived = program.adjoint(wrt=["P", "c"], of=of)
    seeds = {f"{n}.grad": R.standard_normal(np.shape(v)) for n, v in _by_name(program, program(given)).items()}
    for each, arguments in ((program, given), (derived, given | seeds)):
        arguments = {n: v for n, v in arguments.items() if n in each.inputs}
        found, wanted = _by_name(each, each(arguments)), _by_name(each, each.run_reference(arguments))
        for key, value in wanted.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-10, atol=1e-10, err_msg=key)


def _by_name(program: ts.Program, result: Any) -> dict[str, Any]:
    return result if isinstance(result, dict) else {program.outputs[0]: result}


def test_a_strip_is_one_loop() -> None:
    source = ts.program(STRIPS["components"]).source(P=R.standard_normal((700, 3)), c=np.zeros(3))
    assert source.count("def step0_") == 1
    assert "def step0_1" in ts.program(STRIPS["what is slow stays apart"]).source(P=np.zeros((700, 3)), c=np.zeros(3))


CELL = """
for t:
    G[t,i] = sigmoid((h[t-1,i] if t > 0 else start[i]) * w[i] + x[t,i])
    h[t,i] = (h[t-1,i] if t > 0 else start[i]) * G[t,i] + tanh(x[t,i])
Y[i] += h[t,i]
"""


TWO = CELL.replace("tanh(x[t,i])", "(tanh(x[t,i]) if t != 1 else x[t-1,i] / 2)")


@pytest.mark.parametrize("cell", [CELL, TWO], ids=["one", "two"])
@pytest.mark.parametrize("width", [1, 14, 31, 40])
def test_what_a_step_decides_is_decided_before_its_loop(width: int, cell: str) -> None:
    """And few points are shared out among threads in pairs, where a step takes long."""
    program = ts.program(cell)
    given = {"x": R.standard_normal((6, width)), "w": R.standard_normal(width), "start": R.standard_normal(width)}
    for each in (program, ts.program(f"{cell}loss += Y[i] ** 2\nreturn loss").grad()):
        found, wanted = _by_name(each, each(given)), _by_name(each, each.run_reference(given))
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-11, atol=1e-11, err_msg=name)
    code = re.sub("#.*", "", program.source(given))
    assert not re.search(r"\S if i\d+ (>|!=) ", code)
    if width == 14:
        assert "min(7, " in code


def test_a_sum_has_as_many_terms_whatever_is_chosen() -> None:
    """r stands in one of two values alone."""
    text = (
        "for t:\n    G[t,i] = exp(x[t,i])\n    h[t,i] += (v[t-1,r,i] * G[t,i] if t > 0 else x[t,i])\n"
        "    v[t,r,i] = h[t,i] * w[r]\nY[i] += h[t,i]"
    )
    program = ts.program(text)
    given = {"x": R.standard_normal((4, 300)), "w": R.standard_normal(3)}
    np.testing.assert_allclose(program(given), program.run_reference(given), rtol=1e-11)


def test_much_work_leaves_little() -> None:
    """Q could share an index with what reads it, but then all of F would have to be stored."""
    text = "Q[k,j] = exp(q[k,j])\nR[n,k] += Q[k,j] * x[n,j]\nF[n,k] = tanh(R[n,k])\nM[n] max= F[n,k]\nloss += M[n]"
    given = {"q": R.standard_normal((9, 5)), "x": R.standard_normal((3000, 5))}
    program = ts.program(text)
    np.testing.assert_allclose(program(given), program.run_reference(given), rtol=1e-12)
    told = str(program.plan(given))
    assert "never stored beyond a strip: F, M, R" in told
