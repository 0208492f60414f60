"""Every program of the corpus against JAX in float64: values, adjoints, tangents, and second derivatives."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

import tensorswap as ts
from tensorswap.language.functions import FUNCTIONS

from .corpus import CORPUS
from .daily import share

jax.config.update("jax_enable_x64", True)

Array = NDArray[Any]
Arrays = dict[str, Array]

BY_NAME = {entry.name: entry for entry in sorted(CORPUS, key=lambda entry: not entry.second_order)}
TODAY = share(BY_NAME, 5)
# All tests of a program follow each other, so that one worker of two runs them and asks JAX once: pytest orders them by
# their number among the parameters, if those are the module's.
every = pytest.mark.parametrize("name", TODAY, scope="module")
second_order = pytest.mark.parametrize("name", [name for name in TODAY if BY_NAME[name].second_order], scope="module")


@dataclass(frozen=True)
class Case:
    """One entry at one point: the directions, the seeds, and what JAX makes of them."""

    program: ts.Program
    inputs: dict[str, Any]
    directions: Arrays  # by input
    seeds: Arrays  # by floating-point output
    outputs: Arrays
    gradients: Arrays  # J' seeds
    tangents: Arrays  # J directions
    curvature: Arrays  # the Hessian of <seeds, outputs> times directions


@cache
def case(name: str) -> Case:
    entry = BY_NAME[name]
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    program = ts.program(entry.text)
    inputs = entry.inputs(generator)
    point = {x: np.asarray(inputs[x]) for x in entry.wrt}

    def values(at: Arrays) -> tuple[Arrays, Arrays]:
        """The outputs that have a derivative, and those that have none."""
        found = entry.reference({**inputs, **at})
        named = found if isinstance(found, dict) else {program.outputs[0]: found}
        smooth = {y: array for y, array in named.items() if np.issubdtype(array.dtype, np.floating)}
        return smooth, {y: array for y, array in named.items() if y not in smooth}

    shapes = jax.eval_shape(values, point)[0]
    directions = {x: np.asarray(generator.standard_normal(point[x].shape)) for x in entry.wrt}
    seeds = {y: np.asarray(generator.standard_normal(shapes[y].shape)) for y in shapes}

    def with_gradients(at: Arrays) -> tuple[tuple[Arrays, Arrays], Arrays]:
        smooth, pull, rest = jax.vjp(values, at, has_aux=True)
        return (smooth, pull(seeds)[0]), rest

    def everything(at: Arrays) -> tuple[Arrays, Arrays, Arrays, Arrays]:
        (smooth, gradients), (tangents, curvature), rest = jax.jvp(with_gradients, (at,), (directions,), has_aux=True)
        return {**smooth, **rest}, gradients, tangents, curvature if entry.second_order else {}

    # the code runs once, on a few numbers: what counts is the time that XLA takes to make it
    made = jax.jit(everything).lower(point).compile({"xla_backend_optimization_level": "0"})(point)
    return Case(program, inputs, directions, seeds, *map(as_numpy, made))


def as_numpy(arrays: Mapping[str, Any]) -> Arrays:
    return {name: np.asarray(array) for name, array in arrays.items()}


def call(program: ts.Program, inputs: Mapping[str, Any]) -> Arrays:
    found = program(dict(inputs))
    return found if isinstance(found, dict) else {program.outputs[0]: found}


def suffixed(arrays: Mapping[str, Array], suffix: str) -> Arrays:
    return {f"{name}.{suffix}": array for name, array in arrays.items()}


def check_equal(actual: Mapping[str, Array], expected: Mapping[str, Array], tolerance: float) -> None:
    """The same names, shapes and kinds, and values that agree relative to the largest of each array."""
    assert set(actual) == set(expected)
    for name, wanted in expected.items():
        found = actual[name]
        assert found.shape == wanted.shape, name
        assert found.dtype.kind == wanted.dtype.kind, name
        size = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * size, err_msg=name)


def check_adjoint(c: Case) -> None:
    adjoint = c.program.adjoint(wrt=list(c.gradients))
    found = call(adjoint, {**c.inputs, **suffixed(c.seeds, "grad")})
    check_equal(found, suffixed(c.gradients, "grad"), 1e-9)


def check_tangent(c: Case) -> None:
    tangent = c.program.tangent(wrt=list(c.gradients))
    found = call(tangent, {**c.inputs, **suffixed(c.directions, "dot")})
    check_equal(found, suffixed(c.tangents, "dot"), 1e-9)


def check_parses_back(program: ts.Program) -> None:
    assert ts.program(str(program)) == program


@every
def test_values(name: str) -> None:
    c = case(name)
    check_equal(call(c.program, c.inputs), c.outputs, 1e-10)


@every
def test_adjoint(name: str) -> None:
    check_adjoint(case(name))


@every
def test_tangent(name: str) -> None:
    check_tangent(case(name))


@every
def test_adjoint_is_the_transposed_tangent(name: str) -> None:
    """<J v, w> = <v, J' w>, without JAX in between."""
    c = case(name)
    moved = call(c.program.tangent(wrt=list(c.directions)), {**c.inputs, **suffixed(c.directions, "dot")})
    pulled = call(c.program.adjoint(wrt=list(c.directions)), {**c.inputs, **suffixed(c.seeds, "grad")})
    left = [moved[f"{y}.dot"] * seed for y, seed in c.seeds.items()]
    right = [pulled[f"{x}.grad"] * direction for x, direction in c.directions.items()]
    size = sum(float(np.sum(np.abs(part))) for part in (*left, *right))
    difference = sum(float(np.sum(part)) for part in left) - sum(float(np.sum(part)) for part in right)
    assert size > 0
    assert abs(difference) <= 1e-12 * size


@every
def test_text_parses_back(name: str) -> None:
    c = case(name)
    check_parses_back(c.program)
    check_parses_back(c.program.adjoint(wrt=list(c.directions)))
    check_parses_back(c.program.tangent(wrt=list(c.directions)))


@second_order
def test_tangent_of_adjoint(name: str) -> None:
    c = case(name)
    product = c.program.adjoint(wrt=list(c.directions)).tangent(wrt=list(c.directions))
    check_parses_back(product)
    found = call(product, {**c.inputs, **suffixed(c.seeds, "grad"), **suffixed(c.directions, "dot")})
    check_equal(found, suffixed(c.curvature, "grad.dot"), 1e-9)


@second_order
def test_adjoint_of_adjoint(name: str) -> None:
    """The Hessian is symmetric, so the adjoint of the gradient gives the same product as its tangent."""
    c = case(name)
    product = c.program.adjoint(wrt=list(c.directions)).adjoint(wrt=list(c.directions))
    check_parses_back(product)
    found = call(product, {**c.inputs, **suffixed(c.seeds, "grad"), **suffixed(c.directions, "grad.grad2")})
    check_equal(found, suffixed(c.curvature, "grad2"), 1e-9)


def test_the_corpus_is_large_and_its_names_differ() -> None:
    assert len(BY_NAME) == len(CORPUS) >= 45
    assert sum(entry.second_order for entry in CORPUS) >= 18


@pytest.mark.parametrize("check", [check_adjoint, check_tangent])
def test_a_wrong_rule_is_found(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    c = case("rnn")
    check(c)
    monkeypatch.setitem(FUNCTIONS, "tanh", replace(FUNCTIONS["tanh"], derivatives=("1 - 0.999999 * y * y",)))
    with pytest.raises(AssertionError):
        check(c)


def test_a_wrong_shape_kind_value_or_name_is_found() -> None:
    whole = {"Y": np.ones((2, 1))}
    check_equal(whole, whole, 1e-9)
    for wrong in (np.ones((1, 2)), np.ones((2, 1), int), np.array([[1], [1 + 1e-8]])):
        with pytest.raises(AssertionError):
            check_equal({"Y": wrong}, whole, 1e-9)
    with pytest.raises(AssertionError):
        check_equal({"Z": whole["Y"]}, whole, 1e-9)
