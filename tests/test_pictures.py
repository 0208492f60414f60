"""Pictures are well-formed, and show what the program does: each tensor, each flow, each gradient that comes back."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import LimitError
from tensorswap.pictures.curves import MOST as PARTS
from tensorswap.pictures.curves import Curve, curves_svg, loss_curves
from tensorswap.pictures.dataflow import dataflow
from tensorswap.pictures.drawn import MOST, dataflow_svg
from tensorswap.pictures.layers import GAP, place
from tensorswap.pictures.roofline import Point, roofline_svg
from tensorswap.pictures.zero_pattern import sparsity_svg

RECURRENT = """
P[t,b,h] += Wx[h,d] * X[t,b,d]
for t:
    P[t,b,h] += Wh[h,g] * (H[t-1,b,g] if t > 0 else 0)
    H[t,b,h] = tanh(P[t,b,h])
loss += H[t,b,h] ** 2
"""
SVG = "{http://www.w3.org/2000/svg}"


def test_a_product_flows_and_comes_back() -> None:
    graph = dataflow(ts.program("Y[i,j] += A[i,k] * B[k,j]").loops)
    assert [(t.name, t.indices, t.kind) for t in graph.tensors] == [
        ("A", "i,k", "input"), ("B", "k,j", "input"), ("Y", "i,j", "output")
    ]  # fmt: skip
    assert [(f.source, f.target, f.statements, f.returns) for f in graph.flows] == [
        ("A", "Y", (1,), True), ("B", "Y", (1,), True)
    ]  # fmt: skip


def test_no_gradient_comes_back_where_there_is_none() -> None:
    graph = dataflow(ts.program("M[i] max= X[i,j]\nY[i,j] = X[i,j] - stop(M[i])\nZ[i] = Y[i,k[i]]").loops)
    returns = {(flow.source, flow.target): flow.returns for flow in graph.flows}
    assert returns == {("X", "M"): False, ("X", "Y"): True, ("M", "Y"): False, ("Y", "Z"): True, ("k", "Z"): False}
    assert {t.name: t.kind for t in graph.tensors}["k"] == "whole"


def test_only_the_step_before_closes_a_circle() -> None:
    graph = dataflow(ts.program(RECURRENT).loops)
    assert [(f.source, f.target) for f in graph.flows if f.earlier] == [("H", "P")]
    own = dataflow(ts.program("for t:\n    H[t] = a * (H[t-1] if t > 0 else 0) + X[t]\n").loops)
    assert [(f.source, f.target) for f in own.flows if f.earlier] == [("H", "H")]


def test_only_the_inputs_asked_for_get_a_gradient() -> None:
    graph = dataflow(ts.program("Y[i,j] += A[i,k] * B[k,j]").loops, ["B"])
    assert [flow.returns for flow in graph.flows] == [False, True]


def test_boxes_stand_below_what_flows_into_them_and_apart() -> None:
    arrows = [("a", "c"), ("b", "c"), ("c", "d"), ("a", "d"), ("c", "e"), ("d", "f"), ("e", "f"), ("b", "f")]
    widths = dict.fromkeys("abcdef", 60.0)
    placed = place(widths, arrows)
    assert all(placed.layers[source] < placed.layers[target] for source, target in arrows)
    for one in widths:
        for other in widths:
            if one < other and placed.layers[one] == placed.layers[other]:
                assert abs(placed.middles[one] - placed.middles[other]) >= 60 + GAP - 1e-9
    assert min(placed.middles.values()) >= 30
    assert max(placed.middles.values()) <= placed.width - 30
    assert len(placed.bends["a", "d"]) == placed.layers["d"] - placed.layers["a"] - 1
    assert len(placed.bends["b", "f"]) == 2


def test_arrows_that_need_not_cross_do_not() -> None:
    placed = place(dict.fromkeys("abcd", 40.0), [("a", "d"), ("b", "c")])
    assert (placed.middles["a"] - placed.middles["b"]) * (placed.middles["d"] - placed.middles["c"]) > 0


@pytest.mark.parametrize("text", ["Y[i,j] += A[i,k] * B[k,j]", RECURRENT, "Y[i] = i", "loss += x[i] ** 2"])
def test_a_picture_holds_a_box_for_each_tensor_and_links_its_statements(text: str) -> None:
    loops = ts.program(text).loops
    drawn = ElementTree.fromstring(dataflow_svg(loops))
    boxes = [group.get("data-tensor") for group in drawn.iter(f"{SVG}g") if group.get("data-tensor")]
    assert sorted(boxes) == sorted({*loops.inputs, *loops.written})
    wide, high = float(drawn.get("width", 0)), float(drawn.get("height", 0))
    for box in drawn.iter(f"{SVG}rect"):
        if box.get("class") != "paper":
            x, y, w, h = (float(box.get(name, 0)) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= wide
            assert 0 <= y <= y + h <= high
    numbers = {n for group in drawn.iter(f"{SVG}g") for n in (group.get("data-statement") or "").split()}
    assert numbers == {str(k) for k in range(1, len(loops.statements) + 1)}


def test_a_picture_of_too_much_is_refused() -> None:
    text = "\n".join(["y0 = x", *(f"y{k} = y{k - 1} + 1" for k in range(1, MOST + 1))])
    with pytest.raises(LimitError, match="tensors"):
        dataflow_svg(ts.program(text).loops)


def test_a_roofline_puts_each_kernel_under_its_roof() -> None:
    points = [Point("thin", 1e6, 1e7), Point("thick", 1e9, 1e7, seconds=0.1)]
    drawn = ElementTree.fromstring(roofline_svg(points, 5e10, 1e10))
    dots = {g.get("data-kernel"): g.find(f"{SVG}circle") for g in drawn.iter(f"{SVG}g") if g.get("data-kernel")}
    thin, thick = ({k: float(dot.get(k, 0)) for k in ("cx", "cy")} for dot in dots.values() if dot is not None)
    assert thin["cx"] < thick["cx"]
    assert thin["cy"] > thick["cy"]  # memory holds it back, so that it is lower
    reached = [c for c in drawn.iter(f"{SVG}circle") if c.get("class") == "reached"]
    assert len(reached) == 1
    assert float(reached[0].get("cy", 0)) > thick["cy"]


def numbers_of(path: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path.attrib["d"])]


def curves_in(text: str) -> list[ElementTree.Element]:
    return [found for found in ElementTree.fromstring(text).iter(f"{SVG}path") if found.get("class") == "curve"]


def test_a_curve_falls_where_its_values_fall() -> None:
    (line,) = curves_in(curves_svg([Curve("a < b", [0, 1, 2, 3], [4.0, 3.0, 2.0, 1.5])], "step & more", "loss"))
    places = numbers_of(line)
    assert places == sorted(places)
    assert [y for _, y in places] == sorted(y for _, y in places)  # down the page


def test_values_far_apart_are_shown_by_their_powers() -> None:
    (line,) = curves_in(curves_svg([Curve("loss", [0, 1, 2], [100.0, 1.0, 0.01])]))
    heights = [y for _, y in numbers_of(line)]
    assert heights[1] - heights[0] == pytest.approx(heights[2] - heights[1], abs=0.2)


def test_what_is_no_number_leaves_a_gap() -> None:
    (line,) = curves_in(curves_svg([Curve("loss", range(5), [1.0, 2.0, math.nan, math.inf, 3.0])]))
    assert line.attrib["d"].count("M") == 2
    assert not curves_in(curves_svg([Curve("loss", [0.0], [math.nan])]))
    assert not curves_in(curves_svg([]))


def test_a_long_curve_keeps_its_extremes() -> None:
    values = [0.0] * 100_000
    values[31_415], values[92_653] = 5.0, -5.0
    (line,) = curves_in(curves_svg([Curve("loss", range(len(values)), values)]))
    places = numbers_of(line)
    assert len(places) <= 2 * PARTS
    assert len({y for _, y in places}) == 3


def test_losses_have_a_mean_and_what_validation_gave() -> None:
    assert [curve.name for curve in loss_curves([1.0, 0.5])] == ["loss of a step"]
    curves = loss_curves([float(k) for k in range(100)], [(50.0, 2.0)])
    assert [curve.name for curve in curves] == ["loss of a step", "mean of 2 steps", "validation"]
    assert list(curves[1].ys[:2]) == [0.5, 1.5]


def dark(text: str) -> list[tuple[float, float, float]]:
    cells = [found.attrib for found in ElementTree.fromstring(text).iter(f"{SVG}rect")]
    cells = [cell for cell in cells if cell["fill"] not in ("none", "#ffffff")]
    return [(float(cell["x"]), float(cell["y"]), float(cell["width"])) for cell in cells]


def test_a_pattern_shows_what_is_not_zero() -> None:
    found = dark(sparsity_svg([[1, 0, 0], [0, 2, 3], [0, 0, math.nan]], "J"))
    side = found[0][2]
    cells = [(round((x - 1) / side), round((y - 1) / side), round(width / side)) for x, y, width in found]
    assert cells == [(0, 0, 1), (1, 1, 2), (2, 2, 1)]
    assert "3 x 3, 4 not zero (44.4%)" in sparsity_svg([[1, 0, 0], [0, 2, 3], [0, 0, math.nan]])
    assert not dark(sparsity_svg([0.0, 0.0]))


def test_a_large_pattern_is_drawn_in_parts() -> None:
    text = sparsity_svg(np.eye(1000))
    assert len(dark(text)) >= 128
    assert len(text) < 100_000
    assert "1,000 not zero (0.1%)" in text


@pytest.mark.parametrize("wrong", [np.ones((2, 2, 2)), np.ones(()), np.ones((0, 3)), np.array(["a"])])
def test_what_has_no_pattern_is_refused(wrong: object) -> None:
    with pytest.raises(ts.SwapError, match="a sparsity pattern is of"):
        sparsity_svg(wrong)
