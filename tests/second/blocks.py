"""Blocks of written programs: recurrences up and down, several tensors that read each other's earlier steps, sums of a
step, blocks in blocks, and steps that are wide enough for threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.second.arrays import Array, Leaf

if TYPE_CHECKING:
    from tests.second.write import Writer


def block(w: Writer) -> None:
    step = w.fresh("t")
    w.sizes[step] = w.pick([0, 1, 2, 3, 4, 5, 6, 3, 4])
    down = w.chance(0.4)
    inner = [name for name in w.indices() if name != step]
    inner = [name for name in inner if w.sizes[name] <= 17][:2]
    states = []
    for _ in range(w.random.randint(1, 3)):
        states.append(Array(w.fresh("S"), w.own([step, *w.some(inner, 0, 2)]), written=True))
    body: list[str] = []
    extra: list[Leaf] = []
    for state in states:  # what any statement may read: an earlier step
        extra.append((past(w, state, step, down), frozenset(str(axis.index) for axis in state.axes)))
    before, w.extra = w.extra, tuple(extra)
    keep = w.lines
    w.lines = []
    for state in states:
        own = [str(axis.index) for axis in state.axes]
        if w.chance(0.35):
            sums = w.target(own)
            over = [*own, *w.some([name for name in inner if name not in own], 0, 1)]
            sum_of_a_step(w, sums, step, down, over)
            w.extra += ((f"{sums.name}[{','.join(own)}]", frozenset(own)),)
            earlier = w.extra[-1][0]
        else:
            earlier = next(text for text, _ in extra if text.startswith("(" + state.name) or f" {state.name}[" in text)
        value = w.expression(own, 2)
        w.put(state, "=", f"tanh({earlier} + {value})" if w.chance(0.7) else f"0.5 * {earlier} + sin({value})")
        w.extra += ((f"{state.name}[{','.join(own)}]", frozenset(own)),)
        if w.chance(0.25):
            running = w.target([name for name in own if name != step])
            operator = w.pick(["+=", "+=", "max=", "-="])
            w.put(running, operator, f"{state.name}[{','.join(own)}]" + w.pick(["", f" * {w.leaf(own)}"]))
            places = f"[{','.join(own[1:])}]" if own[1:] else ""
            if w.chance(0.7):
                held = w.target(own)
                w.put(held, "=", f"{running.name}{places} * {w.pick(['0.5', '1', w.leaf(own)])}")
                states = [*states, held]
            elif operator != "max=":
                states = [*states, running]
    if w.chance(0.2):
        nested(w, step, states)
    body = w.lines
    w.lines = [*keep, f"for {step}{' down' if down else ''}:", *("    " + line for line in body)]
    w.extra = before
    w.arrays += [state for state in states if state.name not in {a.name for a in w.arrays}]


def sum_of_a_step(w: Writer, sums: Array, step: str, down: bool, over: list[str]) -> None:
    """A sum that may read what the steps before have made of it."""
    value = w.expression(over, 2)
    if w.chance(0.4):
        earlier = past(w, sums, step, down)
        value = f"({earlier} + {value})" if w.chance(0.5) else f"sin({earlier}) * {value}"
    operator = w.pick(["+=", "+=", "+=", "max="])
    w.put(sums, operator, f"0.4 * {value}", "" if operator == "max=" else w.guard(over, 0.2))


def past(w: Writer, state: Array, step: str, down: bool) -> str:
    lag = w.pick([1, 1, 1, 2])
    rest = [str(axis.index) for axis in state.axes[1:]]
    if rest and w.chance(0.3):  # of a neighbour
        rest[-1] = f"({rest[-1]}{w.pick(['+1', '-1', '+2'])})%size({rest[-1]})"
    place = f"{step}{'+' if down else '-'}{lag}"
    here = f"{state.name}[{','.join([place, *rest])}]"
    inside = f"{step} + {lag} < size({step})" if down else w.pick([f"{step} >= {lag}", f"{step} > {lag - 1}"])
    own = [str(axis.index) for axis in state.axes[1:]]
    start = w.pick(["0", "0.5", w.read(own) if own else w.scalar()])
    outside = f"{step} + {lag} >= size({step})" if down else f"{step} < {lag}"
    return f"({here} if {inside} else {start})" if w.chance(0.7) else f"({start} if {outside} else {here})"


def nested(w: Writer, step: str, states: list[Array]) -> None:
    second = w.fresh("u")
    w.sizes[second] = w.random.randint(1, 4)
    array = Array(w.fresh("S"), w.own([step, second]), written=True)
    w.lines.append(f"for {second}:")
    previous = f"({array.name}[{step},{second}-1] if {second} > 0 else {w.leaf([step])})"
    value = w.expression([step, second], 2)
    w.lines.append(f"    {array.name}[{step},{second}] = 0.5 * {previous} + tanh({value})")
    states.append(array)


def wide_steps(w: Writer) -> None:
    """Sums over a long index and values along it, each of which may read what earlier steps have made of any."""
    step, wide = w.fresh("t"), w.fresh("i")
    w.sizes[step], w.sizes[wide] = w.random.randint(1, 6), w.pick([1, 9, 23, 40, 64])
    w.new_input(w.own([wide]), "float")
    down = w.chance(0.4)
    states = [
        Array(w.fresh("S"), w.own([step, *w.some([wide], 0, 1)]), written=True) for _ in range(w.random.randint(1, 3))
    ]
    before, keep = w.extra, w.lines
    w.extra = tuple((past(w, state, step, down), _names(state)) for state in states)
    w.lines = []
    for state in states:
        own = [str(axis.index) for axis in state.axes]
        earlier = w.pick([text for text, needs in w.extra if needs <= {step, wide}])
        value = f"tanh({w.pick([earlier, w.leaf([step, wide])])} + {w.expression([step, wide], 1)})"
        if wide in own:
            operator = "="
        else:
            operator = w.pick(["+=", "+=", "+=", "-=", "max=", "min="])
            value = f"{value} / size({wide})" if operator in ("+=", "-=") else value
        w.put(state, operator, value, w.guard([wide], 0.2) if operator in ("+=", "-=") else "")
        w.extra += ((f"{state.name}[{','.join(own)}]", _names(state)),)
    body, w.extra = w.lines, before
    w.lines = [*keep, f"for {step}{' down' if down else ''}:", *("    " + line for line in body)]
    w.arrays += states


def along_rows(w: Writer) -> None:
    """Rows that go along their own line each, the step behind the row: guards hold rows against steps, sums take parts
    of an element one after the other, and an element may be read before its statement or after it."""
    step, row = w.fresh("t"), w.fresh("i")
    w.sizes[step], w.sizes[row] = w.random.randint(1, 6), w.pick([1, 7, 8, 9, 16, 17, 33])
    w.new_input(w.own([row, step]), "float")
    down = w.chance(0.3)
    lag = f"{step}{'+' if down else '-'}1"
    inside = f"{step} + 1 < size({step})" if down else f"{step} > 0"
    states = [Array(w.fresh("S"), w.own([row, step]), written=True) for _ in range(w.random.randint(2, 3))]
    own = [row, step]
    before, keep = w.extra, w.lines
    w.lines = []
    for number, state in enumerate(states):
        earlier = f"({state.name}[{row},{lag}] if {inside} else {w.pick(['0', '0.5'])})"
        value = f"{w.pick(['tanh', 'sigmoid', 'sin'])}(0.5 * {earlier} + {w.leaf(own)})"
        if number and w.chance(0.5):
            value = f"{states[number - 1].name}[{row},{step}] * {w.leaf(own)}"
        guard = w.pick(
            [
                "",
                f" if {row} < {step}{w.pick(['', ' - 1', ' + 2'])}",
                f" if {row} >= {step}{w.pick(['', ' + 1', ' + 9'])}",
                f" if {row} + {step} < {w.random.randint(0, 9)}",
                f" if {row} == {step}",
                f" if {row} < {w.random.randint(0, 9)}",
            ]
        )
        if w.chance(0.3):  # in parts
            w.put(state, "+=", value, guard)
            w.put(state, "+=", w.leaf(own), w.pick(["", guard]))
        else:
            w.put(state, "=", value, guard)
        w.extra += ((f"{state.name}[{row},{step}]", _names(state)),)
    body, w.extra = w.lines, before
    w.lines = [*keep, f"for {step}{' down' if down else ''}:", *("    " + line for line in body)]
    if w.chance(0.6):  # of what lives in the block alone, a sum
        total = w.target([row])
        w.put(total, "+=", f"{states[-1].name}[{row},{step}]")
        states = [total]
    w.arrays += states


def _names(array: Array) -> frozenset[str]:
    return frozenset(str(axis.index) for axis in array.axes)
