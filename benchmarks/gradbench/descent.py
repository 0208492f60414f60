"""Gradient descent with a rate that grows after ten steps and shrinks after a bad one, as a block of the language.

GradBench's solver runs until a gradient or a step is small. A block has a number of steps that is known before, so one
that has ended stays where it is: `what` is 0 from then on, and no step changes anything. The rate grows together with
the tenth good step, not in a step of its own.
"""

from __future__ import annotations

from typing import Any


def descent(step: str, point: str, call: str, sign: str) -> str:
    """Statements that move from `start` to the least value (sign "-") or the largest ("+").

    `call` has the value and the gradient at a point that is put in for `{}`: objective.adjoint(x, {}).
    """
    s, better = step, "<" if sign == "-" else ">"
    return f"""
{point}[0,a] = start[a]
{point}_value[0], {point}_slope[0] = {call.format("start")}
{point}_rate[0] = 1e-5
{point}_count[0] = 0
for {s}:
    {point}_steep[{s}] += {point}_slope[{s},a] ** 2
    {point}_next[{s},a] = {point}[{s},a] {sign} {point}_rate[{s}] * {point}_slope[{s},a]
    {point}_far[{s}] += ({point}_next[{s},a] - {point}[{s},a]) ** 2
    {point}_there[{s}], {point}_tilt[{s}] = {call.format(f"{point}_next[{s}]")}
    {point}_what[{s}] = 0 if {point}_steep[{s}] <= 1e-10 else 0 if {point}_far[{s}] <= 1e-10 else \\
        (3 if {point}_count[{s}] == 9 else 2) if {point}_there[{s}] {better} {point}_value[{s}] else 1
    {point}[{s}+1,a] = {point}_next[{s},a] if {point}_what[{s}] >= 2 else {point}[{s},a]
    {point}_slope[{s}+1,a] = {point}_tilt[{s},a] if {point}_what[{s}] >= 2 else {point}_slope[{s},a]
    {point}_value[{s}+1] = {point}_there[{s}] if {point}_what[{s}] >= 2 else {point}_value[{s}]
    {point}_rate[{s}+1] = 2 * {point}_rate[{s}] if {point}_what[{s}] == 3 else \\
        0.5 * {point}_rate[{s}] if {point}_what[{s}] == 1 else {point}_rate[{s}]
    {point}_count[{s}+1] = {point}_count[{s}] + 1 if {point}_what[{s}] == 2 else \\
        {point}_count[{s}] if {point}_what[{s}] == 0 else 0
"""


def least(jax: Any, function: Any, start: Any, steps: int) -> Any:
    """The same in JAX, by a loop that ends when it is done."""
    jnp = jax.numpy

    def going(state: Any) -> Any:
        *_, ended, step = state
        return ~ended & (step < steps)

    def move(state: Any) -> Any:
        x, value, slope, rate, count, ended, step = state
        there = x - rate * slope
        grow = count == 10
        flat = jnp.linalg.norm(slope) <= 1e-5
        ended = flat | (~grow & (jnp.linalg.norm(there - x) <= 1e-5))
        new, tilt = function(there)
        good = ~ended & ~grow & (new < value)
        rate = jnp.where(ended | good, rate, jnp.where(grow, 2 * rate, 0.5 * rate))
        return (
            jnp.where(good, there, x),
            jnp.where(good, new, value),
            jnp.where(good, tilt, slope),
            rate,
            jnp.where(good, count + 1, 0),
            ended,
            step + 1,
        )

    return jax.lax.while_loop(going, move, (start, *function(start), jnp.array(1e-5), 0, False, 0))[0]
