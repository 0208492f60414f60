"""Statements and blocks -> loop nests of one kernel."""

from __future__ import annotations

from ..language import ir
from ..language.affine import affine, subtract_from
from ..language.bounds import at_least_zero
from ..language.build import ONE, ZERO, add, conjuncts, subtract
from ..language.ir import Expr, Number
from ..language.paths import Path, always_read
from ..language.render import AND
from ..language.render import access as show_access
from ..language.render import statement as show_statement
from .expression import WRITTEN_TWICE, Code, Expressions, Fault, Kernel
from .names import shown
from .proof import is_comparison, without_inside

IN_PLACE = {"+=": "+=", "-=": "-=", "*=": "*="}
EXTREME = {"max=": "larger", "min=": "smaller"}
BETTER = {"argmax=": "above", "argmin=": "below"}


def write_items(kernel: Kernel, body: tuple[ir.Item, ...], around: tuple[ir.Block, ...] = ()) -> None:
    for item in body:
        if isinstance(item, ir.Block):
            index, size = kernel.names.index(item.index), kernel.size(item.index)
            steps = f"range({size} - 1, -1, -1)" if item.down else f"range({size})"
            with kernel.lines.block(f"for {index} in {steps}:"):
                write_items(kernel, item.body, (*around, item))
        else:
            assert isinstance(item, ir.Statement), "calls are inlined before a program is exported"
            Nest(kernel, item, tuple(block.index for block in around)).write()


class Nest:
    """The loops of one statement; the indices of the blocks around it are `fixed`."""

    def __init__(self, kernel: Kernel, statement: ir.Statement, fixed: tuple[str, ...]) -> None:
        self.kernel = kernel
        self.lines = kernel.lines
        self.statement = statement
        self.fixed = fixed
        free = [name for name in statement.indices if name not in fixed]
        self.order = loop_order(statement, free)
        indices = frozenset({*statement.indices, *fixed})
        self.guard = without_inside(statement, kernel.proof, indices)
        self.code = Expressions(kernel, statement, indices, bool(self.guard))
        self.checked_early = False  # whether a check stands outside of a loop, which may have no point
        self.total: str | None = None
        tensor = statement.target.tensor
        self.array = kernel.names.array(tensor)
        masked = statement.operator == "=" and tensor in kernel.masked
        self.mask = kernel.names.mask(tensor) if masked else None

    def write(self) -> None:
        self.lines.add(f"# {shown(show_statement(self.statement))}")
        if not apart(self.statement, self.fixed, self.order):
            name = self.lines.fresh("old")
            self.lines.add(f"{name} = {self.array}.copy()")
            self.code.before[self.statement.target.tensor] = name
        if self.statement in self.kernel.unshown.updates:
            self.mask = self.lines.fresh("once")
            self.lines.add(f"{self.mask} = np.zeros({self.array}.shape, np.bool_)")
        with self.lines.aside() as inner:
            self.level(0, self.guard, ())
        if self.checked_early:
            self.lines.add_block(f"if {' and '.join(f'{self.kernel.size(name)} > 0' for name in self.order)}:", inner)
        else:
            self.lines.add_here(inner)

    def level(self, depth: int, pending: Path, path: Path) -> None:
        """What stands inside the first `depth` loops: conditions that can be told here, then the next loop."""
        known = {*self.fixed, *self.order[:depth]}
        ready, pending = ready_atoms(pending, known)
        if ready:
            self.conditions(ready, depth, pending, path)
            return
        self.check_early(depth, pending, path)
        if depth == len(self.order):
            self.point(path)
        elif self.total is None and self.sums_up(depth, pending, path):
            target = self.code.access(self.statement.target, path)
            self.total = self.lines.fresh("total")
            self.lines.add(f"{self.total} = {target}")
            self.loop(depth, pending, path)
            self.lines.add(f"{target} = {self.total}")
            self.total = None
        else:
            self.loop(depth, pending, path)

    def conditions(self, ready: Path, depth: int, pending: Path, path: Path) -> None:
        """`if` for as many conditions as can be told in one line, then the rest."""
        texts: list[str] = []
        for position, atom in enumerate(ready):
            with self.lines.aside() as lines:
                code = self.code.truth(atom, path)
            if lines and texts:
                with self.lines.block(f"if {' and '.join(texts)}:"):
                    self.conditions(ready[position:], depth, pending, path)
                return
            if lines:
                self.checked_early |= depth < len(self.order)
                self.lines.add_here(lines)
                with self.lines.block(f"if {code.text}:"):
                    self.level(depth, (*ready[position + 1 :], *pending), (*path, atom))
                return
            texts.append(code.at(AND))
            path = (*path, atom)
        with self.lines.block(f"if {' and '.join(texts)}:"):
            self.level(depth, pending, path)

    def loop(self, depth: int, pending: Path, path: Path) -> None:
        index = self.order[depth]
        low, high, taken = self.limits(index, {*self.fixed, *self.order[:depth]}, pending)
        size = self.kernel.size(index)
        start = f"max(0, {', '.join(low)})" if low else ""
        stop = f"min({size}, {', '.join(high)})" if high else size
        steps = f"{start}, {stop}" if low else stop
        with self.lines.block(f"for {self.kernel.names.index(index)} in range({steps}):"):
            rest = tuple(atom for atom in pending if atom not in taken)
            self.level(depth + 1, rest, (*path, *taken))

    def limits(self, index: str, known: set[str], pending: Path) -> tuple[list[str], list[str], Path]:
        """Comparisons that become limits of a loop: those with its index alone on one side, up to a sign."""
        low: list[str] = []
        high: list[str] = []
        taken: list[Expr] = []
        for atom in pending:
            if has_access(atom):
                break
            found = limits_of(atom, index, known)
            if found is None:
                continue
            taken.append(atom)
            for lower, limit in found:
                text = self.code.integer(limit, ()).text
                (low if lower else high).append(text)
        return list(dict.fromkeys(low)), list(dict.fromkeys(high)), tuple(taken)

    def check_early(self, depth: int, pending: Path, path: Path) -> None:
        """Checks of accesses that every point evaluates stand outside of the loops that do not matter to them."""
        if pending or depth == len(self.order):
            return
        known = {*self.fixed, *self.order[:depth]}
        for access in (*always_read(*self.statement.target.indices, self.statement.value), self.statement.target):
            for axis, place in enumerate(access.indices):
                if ir.index_names(place) <= known and self.code.is_open(access, axis, path):
                    self.code.place(access, axis, path)
                    self.checked_early = True

    def sums_up(self, depth: int, pending: Path, path: Path) -> bool:
        """Whether the loops from here on reach one element of the target: a variable adds up, not memory."""
        target = self.statement.target
        if self.statement.operator not in (*IN_PLACE, *EXTREME):
            return False
        if any(name in self.order[depth:] for place in target.indices for name in ir.index_names(place)):
            return False
        places = range(len(target.indices))
        return not pending or not any(self.code.is_open(target, axis, path) for axis in places)

    def point(self, path: Path) -> None:
        """What happens at one point."""
        operator = self.statement.operator
        value = self.code.value(self.statement.value, path)
        target = self.total or self.code.access(self.statement.target, path)
        if operator == "=":
            self.assign(target, value)
        elif operator in IN_PLACE:
            self.lines.add(f"{target} {operator} {value.text}")
        elif operator in EXTREME:
            if value.formula is None:
                value = Code(f"{self.kernel.type(self.kernel.kinds.number(self.statement.value))}({value.text})")
            self.lines.add(f"{target} = {self.kernel.use(EXTREME[operator])}({target}, {value.text})")
        else:
            self.argument(value, target)

    def assign(self, target: str, value: Code) -> None:
        if self.mask is not None:
            mask = self.mask + target.removeprefix(self.array)
            number = self.kernel.fault(Fault(show_access(self.statement.target), WRITTEN_TWICE))
            with self.lines.block(f"if {mask}:"):
                self.lines.add(f"return {number}, 0")
            self.lines.add(f"{mask} = True")
        self.lines.add(f"{target} = {value.text}")

    def argument(self, value: Code, target: str) -> None:
        """The position of the winner so far, and its value in another array."""
        best = self.kernel.names.best(self.statement.target.tensor) + target.removeprefix(self.array)
        name = self.code.variable(value)
        position = self.code.variable(self.position())
        better = self.kernel.use(BETTER[self.statement.operator])
        with self.lines.block(f"if {better}({name.text}, {best}, {position.text}, {target}):"):
            self.lines.add(f"{best} = {name.text}")
            self.lines.add(f"{target} = {position.text}")

    def position(self) -> Code:
        """The position of a candidate: in row-major order, behind those of the statements before."""
        result: Expr = ZERO
        for statement in self.kernel.loops.statements:
            if statement is self.statement:
                break
            if statement.target.tensor == self.statement.target.tensor:
                count: Expr = ONE
                for name in ir.candidates(statement):
                    count = ir.Binary("*", count, ir.Size(name)) if count != ONE else ir.Size(name)
                result = add(result, count)
        inner: Expr = ZERO
        for name in ir.candidates(self.statement):
            inner = ir.Index(name) if inner == ZERO else add(ir.Binary("*", inner, ir.Size(name)), ir.Index(name))
        return self.code.integer(add(inner, result), ())


def has_access(atom: Expr) -> bool:
    """Whether evaluating a condition may fail: it reads, or divides by what may be zero."""
    return any(
        isinstance(n, ir.Access)
        or (isinstance(n, ir.Binary) and n.operator in ("//", "%") and not _is_divisor(n.right))
        for n in ir.walk(atom)
    )


def _is_divisor(node: Expr) -> bool:
    return isinstance(node, Number) and node.value != 0


def ready_atoms(pending: Path, known: set[str]) -> tuple[Path, Path]:
    """The conditions that can be told when some indices are known, and the others. None passes one that may fail."""
    ready: list[Expr] = []
    rest: list[Expr] = []
    for position, atom in enumerate(pending):
        told = ir.index_names(atom) <= known
        if has_access(atom) and (rest or not told):
            return tuple(ready), (*rest, *pending[position:])
        (ready if told else rest).append(atom)
    return tuple(ready), tuple(rest)


def limits_of(atom: Expr, index: str, known: set[str]) -> list[tuple[bool, Expr]] | None:
    """What a comparison says of an index: (True, first value) or (False, one behind the last)."""
    constraints = at_least_zero(atom) if is_comparison(atom) else []
    found: list[tuple[bool, Expr]] = []
    for constraint in constraints:
        form = affine(constraint)
        factor = None if form is None else form.terms.get(index)
        if form is None or factor not in (Number(1), Number(-1)) or not set(form.terms) <= {index, *known}:
            return None
        rest = form.without(index)
        found.append((True, subtract_from(ZERO, rest)) if factor == ONE else (False, add(rest.expression(), ONE)))
    return found or None


def loop_order(statement: ir.Statement, free: list[str]) -> list[str]:
    """The indices of the target first, those that are summed over behind them, and innermost the one that walks
    through memory in steps of one, or not at all, in most accesses."""
    target = [n.name for n in ir.walk(statement.target) if isinstance(n, ir.Index) and n.name in free]
    order = list(dict.fromkeys([*target, *free]))
    if not order:
        return order
    innermost = max(order, key=lambda name: (_walk(statement, name), name in target, order.index(name)))
    return [*(name for name in order if name != innermost), innermost]


def _walk(statement: ir.Statement, name: str) -> int:
    """How well an index walks through memory: one point for each access that it does not jump in."""
    points = 0
    for access in (statement.target, *statement.reads):
        used = [axis for axis, place in enumerate(access.indices) if name in ir.index_names(place)]
        last = len(access.indices) - 1
        form = affine(access.indices[last]) if used == [last] else None
        steps = form is not None and form.terms.get(name) in (Number(1), Number(-1))
        points += 1 if not used or steps else -1
    return points


def apart(statement: ir.Statement, fixed: tuple[str, ...], order: list[str]) -> bool:
    """Whether no point writes what another point of the statement reads."""
    target = statement.target
    own = [access for access in statement.reads if access.tensor == target.tensor]
    alone = set(order) <= ir.bare_indices(target)
    return all((alone and access.indices == target.indices) or _differs(statement, access, fixed) for access in own)


def _differs(statement: ir.Statement, access: ir.Access, fixed: tuple[str, ...]) -> bool:
    """Whether some axis keeps a read apart from all writes: the place read is the same for all points."""
    constraints = [c for a in conjuncts(statement.guard) if is_comparison(a) for c in at_least_zero(a)]
    for written, read in zip(statement.target.indices, access.indices, strict=True):
        if not ir.index_names(read) <= set(fixed) or has_access(read):
            continue
        for away in (subtract(written, read), subtract(read, written)):
            if any(_at_least_one(subtract(away, c)) for c in (ZERO, *constraints)):
                return True
    return False


def _at_least_one(node: Expr) -> bool:
    form = affine(node)
    return form is not None and not form.terms and isinstance(form.constant, Number) and form.constant.value >= 1


__all__ = ["Nest", "write_items"]
