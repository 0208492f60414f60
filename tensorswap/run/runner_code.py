"""The code of the runner, as kernel IR."""

from __future__ import annotations

from ..kernel import ir
from ..kernel.ir import ONE, WORD, ZERO, Load, Memory, Value, Variable, compare, word
from .header import EXPECTED, Header
from .rows import COLUMNS, STEP, Entry

table, header, links, given = (Memory(name, WORD) for name in ("table", "header", "links", "given"))
words, copy, objects, expected = (Memory(name, WORD) for name in ("words", "copy", "objects", "expected"))
array, wrong, at, address, k, row, axis, done = (
    Variable(name, WORD) for name in ("array", "wrong", "at", "address", "k", "row", "axis", "done")
)
place = Variable("place", WORD)  # in the list of what is expected
least, greatest = Variable("least", WORD), Variable("greatest", WORD)


def field(name: Header) -> Value:
    return Load(header, word(name))


def every(variable: Variable, count: Value, *body: ir.Statement) -> ir.For:
    return ir.For(variable, ZERO, count, ONE, body)


def pointed(memory: str, address: Value) -> tuple[ir.Statement, Memory]:
    """Words that begin at an address."""
    made = Memory(memory, WORD)
    return ir.Point(made, address), made


def _unless_wrong(*body: ir.Statement) -> ir.If:
    return ir.If(compare("==", wrong, 0), body)


def _fails(*tests: Value) -> ir.If:
    return ir.If(ir.joined("or", list(tests)), (ir.Set(wrong, ONE),))


def _check() -> ir.Body:
    """One array is of the type, shape and strides that are expected, with its words between two numbers."""
    its_type, type = pointed("its_type", array + field(Header.TYPE))
    axes = Memory("axes", ir.I4)
    its_dtype, dtype = pointed("its_dtype", array + field(Header.DTYPE))
    to_shape, shape_at = pointed("shape_at", array + field(Header.SHAPE))
    its_shape, shape = pointed("shape", Load(shape_at, ZERO))
    to_strides, strides_at = pointed("strides_at", array + field(Header.STRIDES))
    its_strides, strides = pointed("strides", Load(strides_at, ZERO))
    to_data, data_at = pointed("data_at", array + field(Header.DATA))
    its_data, data = pointed("data", Load(data_at, ZERO))

    def wanted(k: Value | int) -> Value:
        return Load(expected, place + k)

    extent = compare("!=", Load(shape, axis), wanted(axis * 2 + EXPECTED))
    stride = compare("!=", Load(strides, axis), wanted(axis * 2 + (EXPECTED + 1)))
    low, high = compare("<", Load(data, k), least), compare(">", Load(data, k), greatest)
    outside = ir.Cast(ir.joined("either", [low, high]), WORD)  # without a jump, so that it runs in vectors
    known = ir.Set(least, wanted(3)), ir.Set(greatest, wanted(4))
    return (
        _unless_wrong(its_type, _fails(compare("!=", Load(type, ZERO), field(Header.ARRAY)))),
        _unless_wrong(
            ir.Point(axes, array + field(Header.AXES)),
            its_dtype,
            _fails(
                compare("!=", ir.Cast(Load(axes, ZERO), WORD), wanted(0)), compare("!=", Load(dtype, ZERO), wanted(1))
            ),
        ),
        _unless_wrong(to_shape, its_shape, to_strides, its_strides, every(axis, wanted(0), _fails(extent, stride))),
        _unless_wrong(
            to_data, its_data, *known, every(k, wanted(2), ir.Set(wrong, ir.Operation("|", (wrong, outside), WORD)))
        ),
        ir.Set(place, place + EXPECTED + wanted(0) * 2),
    )


def _step() -> ir.Body:
    """Writes the addresses of all arrays into the contexts, and runs the kernels."""
    to_data, data_at = pointed("data_at", address + field(Header.DATA))

    def link(k_: int) -> Value:
        return Load(links, k * 4 + k_)

    def entry(name: Entry) -> Value:
        return Load(table, row * COLUMNS + int(name))

    linked = every(
        k,
        field(Header.LINKS),
        ir.Set(address, Load(objects, link(1))),
        ir.If(compare(">=", field(Header.DATA), 0), (to_data, ir.Set(address, Load(data_at, ZERO)))),
        ir.Store(copy, link(0), address + link(2) + at * link(3)),
    )
    context = field(Header.COPY) + entry(Entry.CONTEXT) * 8
    launched = ir.Launch(entry(Entry.ADDRESS), entry(Entry.PARTS), context, entry(Entry.THREADS))
    at_hand = ir.Store(copy, entry(Entry.CONTEXT) + STEP, entry(Entry.BEGIN) + entry(Entry.WAY) * done)
    told = ir.If(compare("!=", entry(Entry.WAY), 0), (at_hand,))
    again = (ir.Set(done, done + 1), ir.Set(row, row - entry(Entry.BACK)))
    step_is_done = ir.If(
        compare(">", entry(Entry.BACK), 0),
        (ir.If(compare("<", done + 1, entry(Entry.TIMES)), again, (ir.Set(done, ZERO),)),),
    )
    body = (told, launched, step_is_done, ir.Set(row, row + 1))
    kernels = ir.While(compare("<", row, field(Header.ROWS)), body, stops=True)
    return linked, ir.Set(row, ZERO), ir.Set(done, ZERO), kernels


def function() -> tuple[list[Memory], ir.Body]:
    """What it is given, and what it does."""
    return [table, header, links, given], _body()


def _body() -> ir.Body:
    number = Variable("number", WORD)
    return (
        ir.Point(words, field(Header.WORDS)),
        ir.Point(copy, field(Header.COPY)),
        ir.Point(objects, Load(given, field(Header.ITEMS))),
        ir.Point(expected, field(Header.EXPECTED)),
        ir.Set(wrong, ZERO),
        ir.Set(place, ZERO),
        every(number, field(Header.CHECKED), ir.Set(array, Load(objects, number)), *_check()),
        ir.Store(header, word(Header.WRONG), wrong),
        every(k, field(Header.COUNT), ir.Store(copy, k, Load(words, k))),
        every(at, ir.Choice(compare("==", wrong, 0), field(Header.STEPS), ZERO), *_step()),
    )
