"""The machine code of a direct call: a function of Python's that looks up arrays, makes results and runs kernels.

Objects are addresses in words here. Whatever may run code of a user's (a lookup, by the keys of a dict), or let other
threads of Python run (numpy does when it makes or copies an array that is not small), happens before anything is
touched that other calls share, and with a reference to each object that was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from .. import assembly as llvm
from ..kernel.effort import Effort, mark
from ..kernel.modules import Target
from ..kernel.names import STOP_WORD
from .direct_words import CALLED, LARGEST, Decides, Gives, Kind, Makes, Start, State, Taken
from .header import Header

WORD, NUMBER, BYTE = llvm.IntType(64), llvm.IntType(32), llvm.IntType(8)
DOUBLE, SINGLE = llvm.DoubleType(), llvm.FloatType()
RESULTS = {"PyFloat_AsDouble": DOUBLE, "PyDict_SetItem": NUMBER}  # the others give words, or nothing


class Code:
    """Writes a function that takes words and gives one. `own` is one that no other module sees."""

    def __init__(self, module: Any, name: str, parameters: int, own: bool = False) -> None:
        self.module = module
        self.function = llvm.Function(module, llvm.FunctionType(WORD, [WORD] * parameters), name)
        self.function.linkage = "internal" if own else ""
        self.builder = llvm.Builder(self.function.append_basic_block())
        self.given = self.function.args

    def load(self, address: Any, word: Any = 0) -> Any:
        return self.builder.load(self.builder.inttoptr(self.at(address, word), WORD.as_pointer()))

    def store(self, value: Any, address: Any, word: Any = 0) -> None:
        self.builder.store(value, self.builder.inttoptr(self.at(address, word), value.type.as_pointer()))

    def at(self, address: Any, word: Any) -> Any:
        """The address of a word from another on."""
        return self.builder.add(address, WORD(8 * word) if isinstance(word, int) else self.builder.mul(word, WORD(8)))

    def row(self, rows: Any, number: Any, entries: type[IntEnum]) -> Any:
        return self.builder.add(rows, self.builder.mul(number, WORD(8 * len(entries))))

    def entries(self, row: Any, entries: type[IntEnum]) -> list[Any]:
        return [self.load(row, entry) for entry in entries]

    def type_of(self, found: Any, state: Any) -> Any:
        return self.load(self.builder.add(found, self.load(state, State.TYPE)))

    def room(self, words: Any) -> Any:
        """The address of words that last as long as the function."""
        return self.builder.ptrtoint(self.builder.alloca(WORD, words), WORD)

    def only_if(self, test: Any) -> None:
        """Ends the function with 0 unless a test holds."""
        with self.builder.if_then(self.builder.not_(test), likely=False):
            self.builder.ret(WORD(0))

    def equal(self, left: Any, right: Any) -> Any:
        return self.builder.icmp_signed("==", left, WORD(right) if isinstance(right, int) else right)

    def call(self, name: str, *given: Any) -> Any:
        """Calls a function of Python's, or of the system's library."""
        assert name in CALLED
        found = self.module.globals.get(name)
        kind = llvm.FunctionType(RESULTS.get(name, WORD), [WORD] * len(given))
        return self.builder.call(found or llvm.Function(self.module, kind, name), given)

    def call_at(self, address: Any, *given: Any) -> Any:
        kind = llvm.FunctionType(WORD, [value.type for value in given])
        return self.builder.call(self.builder.inttoptr(address, kind.as_pointer()), given)

    @contextmanager
    def each(self, count: Any) -> Iterator[Any]:
        """A loop over the numbers below a count."""
        before, head, body, after = (self.builder.block, *(self.function.append_basic_block() for _ in range(3)))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        number = self.builder.phi(WORD)
        number.add_incoming(WORD(0), before)
        self.builder.cbranch(self.builder.icmp_signed("<", number, count), body, after)
        self.builder.position_at_end(body)
        yield number
        number.add_incoming(self.builder.add(number, WORD(1)), self.builder.block)
        self.builder.branch(head)
        self.builder.position_at_end(after)


def module(name: str, target: Target) -> str:
    """The text of a module with the function of that name: it takes what it is bound to, arguments, and named ones."""
    made = llvm.Module(name)
    made.triple, made.data_layout = target.triple, target.layout
    mark(made, Effort.PROMPT)
    llvm.GlobalVariable(made, WORD, STOP_WORD)
    run = _run(made)
    code = Code(made, name, 3)
    own, positional, named = code.given
    state = code.call("PyLong_AsVoidPtr", code.call("PyTuple_GetItem", own, WORD(0)))

    def otherwise_unless(test: Any) -> None:
        with code.builder.if_then(code.builder.not_(test), likely=False):
            code.builder.ret(code.call("PyObject_Call", code.load(state, State.OTHERWISE), positional, named))

    otherwise_unless(code.equal(code.load(code.load(state, State.WATCHED)), 0))
    count = code.call("PyTuple_Size", positional)
    mapping = code.builder.and_(code.equal(count, 1), code.equal(named, 0))
    otherwise_unless(code.builder.or_(mapping, code.equal(count, 0)))
    place = code.room(WORD(1))
    code.store(named, place)
    with code.builder.if_then(mapping):
        code.store(code.call("PyTuple_GetItem", positional, WORD(0)), place)
    arguments = code.load(place)
    otherwise_unless(code.builder.not_(code.equal(arguments, 0)))
    otherwise_unless(code.equal(code.type_of(arguments, state), code.load(state, State.DICT)))
    otherwise_unless(code.equal(code.call("PyDict_Size", arguments), code.load(state, State.COUNT)))
    result = code.builder.call(run, [state, arguments])
    refused = code.builder.and_(code.equal(result, 0), code.equal(code.call("PyErr_Occurred"), 0))
    otherwise_unless(code.builder.not_(refused))
    code.builder.ret(result)
    return str(made)


def _run(module: Any) -> Any:
    """The results of a call with a dict of as many arguments; 0 if it is one of another kind, or there is an error."""
    code = Code(module, "run", 2, own=True)
    state, arguments = code.given
    count, made = code.load(state, State.COUNT), code.load(state, State.MADE)
    objects, slots = code.room(count), code.room(code.load(state, State.SLOTS))
    found = code.builder.call(_taken(module), [state, arguments, objects])
    release, unlock = _release(module), _unlock(module)

    def unless(test: Any, locked: bool = True, results: Any = None, number: Any = None) -> None:
        with code.builder.if_then(code.builder.not_(test), likely=False):
            leave(locked, results, number)
            code.builder.ret(WORD(0))

    def leave(locked: bool, results: Any, number: Any) -> None:
        if locked:
            code.builder.call(unlock, [state])
        if results is not None:
            code.builder.call(release, [results, number])
        code.builder.call(release, [objects, found])

    unless(code.equal(found, count), locked=False)
    unless(code.equal(code.builder.call(_lock(module), [state]), 1), locked=False)
    results = code.at(slots, code.load(state, State.INPUTS))
    number = code.builder.call(_make(module), [state, objects, results])
    unless(code.equal(number, made), results=results, number=number)
    # From here on no other thread of Python runs, unless this one holds the lock of all kernels.
    going_on = code.equal(code.builder.load(module.globals[STOP_WORD]), 0)  # else kernels stop that were just begun
    unless(going_on, results=results, number=made)
    unless(code.equal(code.builder.call(_read(module), [state, objects, slots]), 1), results=results, number=made)
    code.store(code.load(state, State.MEMORY), results, made)
    code.builder.call(_begin(module), [state])
    code.builder.call(_kernels(module), [state, slots])
    as_expected = code.equal(code.load(code.load(state, State.HEADER), Header.WRONG), 0)
    unless(as_expected, results=results, number=made)
    unless(code.equal(code.builder.call(_decided(module), [state, slots]), 1), results=results, number=made)
    code.builder.call(unlock, [state])  # what comes now may collect garbage, which may call programs
    output = code.builder.call(_given(module), [state, slots])
    leave(False, results, made)
    code.builder.ret(output)
    return code.function


def _begin(module: Any) -> Any:
    """Writes what memory begins with."""
    code = Code(module, "begin", 1, own=True)
    (state,) = code.given
    rows = code.load(state, State.STARTS)
    with code.each(code.load(state, State.BEGUN)) as number:
        place, like, size = code.entries(code.row(rows, number, Start), Start)
        with code.builder.if_else(code.equal(like, 0)) as (zeros, others):
            with zeros:
                code.call("memset", place, WORD(0), size)
            with others:
                code.call("memcpy", place, like, size)
    code.builder.ret(WORD(0))
    return code.function


def _decided(module: Any) -> Any:
    """0 if some result says that the others may be wrong."""
    code = Code(module, "decided", 2, own=True)
    state, slots = code.given
    rows = code.load(state, State.BYTES)
    with code.each(code.load(state, State.DECIDING)) as number:
        slot, size = code.entries(code.row(rows, number, Decides), Decides)
        data = code.load(code.builder.add(code.load(slots, slot), code.load(state, State.DATA)))
        with code.each(size) as byte:
            place = code.builder.inttoptr(code.builder.add(data, byte), BYTE.as_pointer())
            code.only_if(code.builder.icmp_signed("==", code.builder.load(place), BYTE(0)))
    code.builder.ret(WORD(1))
    return code.function


def _kernels(module: Any) -> Any:
    """Runs kernels on arrays, while other threads of Python do what they like if they share the lock of all kernels."""
    code = Code(module, "kernels", 2, own=True)
    state, slots = code.given
    listed, thread = code.room(WORD(1)), code.room(WORD(1))
    code.store(slots, listed)
    shared = code.builder.not_(code.equal(code.load(state, State.SHARED), 0))
    with code.builder.if_then(shared):
        code.store(code.call("PyEval_SaveThread"), thread)
    given = [code.load(state, word) for word in (State.TABLE, State.HEADER, State.LINKS)]
    code.call_at(code.load(state, State.RUNNER), *given, code.builder.sub(listed, code.load(state, State.ITEMS)))
    with code.builder.if_then(shared):
        code.call("PyEval_RestoreThread", code.load(thread))
    code.builder.ret(WORD(0))
    return code.function


def _lock(module: Any) -> Any:
    """Takes the lock of all kernels, where one is needed: 0 if another thread has it."""
    code = Code(module, "lock", 1, own=True)
    (state,) = code.given
    with code.builder.if_then(code.equal(code.load(state, State.SHARED), 0)):
        code.builder.ret(WORD(1))
    with code.builder.if_then(code.builder.not_(code.equal(code.load(code.load(state, State.ALONE)), 0))):
        code.builder.ret(WORD(0))
    acquire, acquired, empty = (code.load(state, word) for word in (State.ACQUIRE, State.ACQUIRED, State.EMPTY))
    found = code.call("PyObject_Call", acquire, empty, WORD(0))
    with code.builder.if_then(code.equal(found, 0), likely=False):
        code.builder.ret(WORD(0))
    code.call("Py_DecRef", found)
    code.builder.ret(code.builder.zext(code.equal(found, acquired), WORD))
    return code.function


def _unlock(module: Any) -> Any:
    """Gives it back. What went wrong meanwhile (there was no memory) is left to calls of another kind to find."""
    code = Code(module, "unlock", 1, own=True)
    (state,) = code.given
    code.call("PyErr_Clear")
    with code.builder.if_then(code.equal(code.load(state, State.SHARED), 0)):
        code.builder.ret(WORD(0))
    release, empty = code.load(state, State.RELEASE), code.load(state, State.EMPTY)
    code.call("Py_DecRef", code.call("PyObject_Call", release, empty, WORD(0)))
    code.builder.ret(WORD(0))
    return code.function


def _taken(module: Any) -> Any:
    """Finds the arguments by their names, with a reference to each: how many it finds before one is missing."""
    code = Code(module, "taken", 3, own=True)
    state, arguments, objects = code.given
    count, rows = code.load(state, State.COUNT), code.load(state, State.TAKEN)
    with code.each(count) as number:
        name = code.load(code.row(rows, number, Taken), Taken.NAME)
        found = code.call("PyDict_GetItemWithError", arguments, name)
        with code.builder.if_then(code.equal(found, 0), likely=False):
            code.builder.ret(number)
        code.call("Py_IncRef", found)
        code.store(found, objects, number)
    code.builder.ret(count)
    return code.function


def _read(module: Any) -> Any:
    """Puts arrays into their slots and numbers into their cells: 0 if some number is of another kind."""
    code = Code(module, "read", 3, own=True)
    builder = code.builder
    state, objects, slots = code.given
    rows = code.load(state, State.TAKEN)
    past = builder.alloca(NUMBER)

    def whole() -> Any:
        """The number at hand, if every type takes it as it is."""
        number = code.call("PyLong_AsLongLongAndOverflow", found, builder.ptrtoint(past, WORD))
        code.only_if(builder.icmp_signed("==", builder.load(past), NUMBER(0)))
        code.only_if(builder.icmp_unsigned("<=", builder.add(number, WORD(LARGEST)), WORD(2 * LARGEST)))
        return number

    with code.each(code.load(state, State.COUNT)) as position:
        row, found = code.row(rows, position, Taken), code.load(objects, position)
        kind, slot, cell = (code.load(row, entry) for entry in (Taken.KIND, Taken.SLOT, Taken.CELL))
        with builder.if_then(code.equal(kind, Kind.ARRAY)):
            code.store(found, slots, slot)
        with builder.if_then(builder.not_(code.equal(kind, Kind.ARRAY))):
            code.only_if(code.equal(code.type_of(found, state), code.load(row, Taken.TYPE)))
            with builder.if_then(code.equal(kind, Kind.FIXED)):
                code.only_if(code.equal(whole(), cell))
            with builder.if_then(builder.not_(code.equal(kind, Kind.FIXED))):
                code.store(cell, slots, slot)
            place = code.load(row, Taken.PLACE)
            for wanted, write in WRITES.items():
                with builder.if_then(code.equal(kind, wanted)):
                    code.store(write(code, found, whole), place)
    builder.ret(WORD(1))
    return code.function


def _float(code: Code, found: Any, whole: Callable[[], Any]) -> Any:
    return code.call("PyFloat_AsDouble", found)


WRITES: dict[Kind, Callable[[Code, Any, Callable[[], Any]], Any]] = {
    Kind.WORD: lambda code, found, whole: whole(),
    Kind.DOUBLE: _float,
    Kind.SINGLE: lambda code, found, whole: code.builder.fptrunc(_float(code, found, whole), SINGLE),
    Kind.WHOLE_DOUBLE: lambda code, found, whole: code.builder.sitofp(whole(), DOUBLE),
    Kind.WHOLE_SINGLE: lambda code, found, whole: code.builder.sitofp(whole(), SINGLE),
}


def _make(module: Any) -> Any:
    """Makes the results: how many of them before one cannot be made."""
    code = Code(module, "make", 3, own=True)
    builder, copied = code.builder, _copied(module)
    state, objects, results = code.given
    count, rows = code.load(state, State.MADE), code.load(state, State.MAKES)
    place = code.room(WORD(1))
    with code.each(count) as number:
        row = code.row(rows, number, Makes)
        make, axes, shape, dtype, like, size, old = code.entries(row, Makes)
        with builder.if_else(builder.icmp_signed(">=", old, WORD(0))) as (another, new):
            with another:
                code.store(builder.call(copied, [state, row, code.load(objects, old)]), place)
            with new:
                code.call("Py_IncRef", dtype)  # numpy keeps that reference
                code.store(code.call_at(make, builder.trunc(axes, NUMBER), shape, dtype, NUMBER(0)), place)
        made = code.load(place)
        with builder.if_then(code.equal(made, 0), likely=False):
            builder.ret(number)
        with builder.if_then(builder.not_(code.equal(like, 0))):
            code.call("memcpy", code.load(builder.add(made, code.load(state, State.DATA))), like, size)
        code.store(made, results, number)
    builder.ret(count)
    return code.function


def _copied(module: Any) -> Any:
    """A copy of what is an array of the right elements, whatever its shape, which the runner looks at; else 0."""
    code = Code(module, "copied", 3, own=True)
    state, row, array = code.given
    code.only_if(code.equal(code.type_of(array, state), code.load(state, State.ARRAY)))
    dtype = code.load(code.builder.add(array, code.load(state, State.DTYPE)))
    code.only_if(code.equal(dtype, code.load(row, Makes.DTYPE)))
    code.builder.ret(code.call_at(code.load(row, Makes.MAKE), array, NUMBER(0)))
    return code.function


def _given(module: Any) -> Any:
    """What the call gives: the only output, or a dict of all; 0 if there is no memory for one."""
    code = Code(module, "given", 2, own=True)
    state, slots = code.given
    rows = code.load(state, State.NAMES)
    with code.builder.if_then(code.equal(code.load(state, State.GIVES), 0)):
        only = code.load(slots, code.load(rows, Gives.SLOT))
        code.call("Py_IncRef", only)
        code.builder.ret(only)
    made = code.call("PyDict_New")
    with code.builder.if_then(code.equal(made, 0), likely=False):
        code.builder.ret(made)
    with code.each(code.load(state, State.GIVES)) as number:
        row = code.row(rows, number, Gives)
        value = code.load(slots, code.load(row, Gives.SLOT))
        failed = code.call("PyDict_SetItem", made, code.load(row, Gives.NAME), value)
        with code.builder.if_then(code.builder.icmp_signed("<", failed, NUMBER(0)), likely=False):
            code.call("Py_DecRef", made)
            code.builder.ret(WORD(0))
    code.builder.ret(made)
    return code.function


def _release(module: Any) -> Any:
    """Gives references back."""
    if "release" in module.globals:
        return module.globals["release"]
    code = Code(module, "release", 2, own=True)
    objects, count = code.given
    with code.each(count) as number:
        code.call("Py_DecRef", code.load(objects, number))
    code.builder.ret(WORD(0))
    return code.function
