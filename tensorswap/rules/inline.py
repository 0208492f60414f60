"""Inline: a program with calls -> one without. Indices and local tensors get names of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import cache
from operator import is_

from ..errors import LimitError, ProgramError
from ..language import ir, limits
from ..language.affine import is_constant, not_bare, simplified
from ..language.check import check
from ..language.hints import unknown_call
from ..language.ir import Expr
from ..language.name_kinds import flat_items, roots
from ..language.render import access as show_access
from ..language.sizes import bare_uses, bare_written, infer
from .batch import spelled
from .ellipsis import OWN, Extent, in_their_places, of_statements
from .optional import optional_tensors, without
from .whole import Whole, speaks_of_whole

Library = Callable[[], Mapping[str, ir.Loops]]  # read only when a call asks for it


def inline(
    loops: ir.Loops,
    definitions: Mapping[str, ir.Loops],
    library: Library,
    active: tuple[str, ...] = (),
    done: dict[str, ir.Loops] | None = None,
) -> ir.Loops:
    """The program with every call replaced by the statements of its definition; `done` holds those already inlined."""
    if not any(isinstance(item, ir.CallStatement) for item in flat_items(loops.body)) and not speaks_of_whole(loops):
        return loops
    if done is None:
        done = {} if definitions else _inlined(library)  # a text's own definition may stand for one of the library's
    work = _Inliner(loops, definitions, library, active, done)
    loops = work.caller
    body = work.items(loops.body, ())
    inlined = _with_array(replace(loops, body=body, sizes=(*loops.sizes, *work.sizes)), work.batched)
    return _with_own_outputs(inlined, loops)


@cache
def _inlined(library: Library) -> dict[str, ir.Loops]:
    """The library's definitions that were inlined so far: they are the same for every program."""
    return {}


def _with_own_outputs(inlined: ir.Loops, caller: ir.Loops) -> ir.Loops:
    """The outputs are those that the caller's own text tells: what a definition writes for itself and nobody reads is
    none, and what it reads of what it gives stays one."""
    if caller.header or caller.returns is not None:
        return inlined
    written: set[str] = set()
    read: set[str] = set()
    for item in flat_items(caller.body):
        if not isinstance(item, ir.Block):
            targets = item.targets if isinstance(item, ir.CallStatement) else (item.target,)
            own = {target.tensor for target in targets}
            written |= own
            read |= {n.tensor for root in roots(item) for n in ir.walk(root) if isinstance(n, ir.Access)} - own
    names = (name for name in inlined.written if name in written)
    outputs = tuple(name for name in names if name not in read or name in inlined.updated)
    return inlined if outputs == inlined.default_outputs else replace(inlined, returns=outputs)


def _with_array(loops: ir.Loops, batched: Mapping[str, ir.Access]) -> ir.Loops:
    """`X[...,c]: array` where only the header of a definition showed what `...` stands for."""
    if loops.header or ir.BATCH not in loops.indices:
        return loops
    shown = [*loops.arrays, *(a for s in loops.statements for a in s.reads if a.tensor in loops.inputs)]
    given = [access for name, access in batched.items() if name not in loops.written]
    if any(access.batched for access in shown) or not given:
        return loops
    return replace(loops, arrays=(*loops.arrays, given[0]))


class _Inliner:
    def __init__(
        self,
        caller: ir.Loops,
        definitions: Mapping[str, ir.Loops],
        library: Library,
        active: tuple[str, ...],
        done: dict[str, ir.Loops],
    ) -> None:
        self.definitions = definitions
        self.library = library
        self.active = active
        self.done = done
        self.used: dict[str, int] = {}
        self.sizes: list[ir.SizeDeclaration] = []
        self.batched: dict[str, ir.Access] = {}  # what headers say of the caller's tensors with `...`
        self.made: dict[str, ir.Loops] = {}
        caller, self.made = Whole(caller, self.matched).calls()
        self.callees = {
            id(item): self.matched(item) for item in flat_items(caller.body) if isinstance(item, ir.CallStatement)
        }
        self.extents = self.ellipses(caller)
        own = self.extents[OWN]
        if ir.BATCH in caller.indices and (own.count or not own.open):
            caller = spelled(caller, own.count, own.open)
        self.caller = caller
        self.assigned = {s.target.tensor for s in caller.statements if s.operator == "="}
        self.taken = set(caller.names) | _names_in_calls(caller)
        self.axes = _axis_indices(caller)
        self.sized = {use.index for use in bare_uses(caller) if use.tensor in caller.inputs}
        self.count = 0

    def items(self, body: tuple[ir.Item, ...], blocks: tuple[str, ...]) -> tuple[ir.Item, ...]:
        result: list[ir.Item] = []
        for item in body:
            if isinstance(item, ir.Block):
                result.append(replace(item, body=self.items(item.body, (*blocks, item.index))))
            elif isinstance(item, ir.CallStatement):
                made = self.call(item, blocks)
                self.count += len(flat_items(made))
                if self.count > limits.STATEMENTS:
                    raise LimitError(f"the calls expand to more than {limits.STATEMENTS:,} statements", item.span)
                result.extend(made)
            else:
                result.append(item)
        return tuple(result)

    def definition(self, call: ir.CallStatement) -> ir.Loops:
        name = call.function
        if name in self.made:
            check(self.made[name])
            return self.made[name]
        if name in self.active:
            raise ProgramError(
                f"{name} calls itself",
                call.span,
                "a definition is inlined, so it cannot be recursive: use a `for` block",
            )
        if name in self.done:
            return self.done[name]
        found = self.definitions.get(name) or self.library().get(name)
        if found is None:
            raise ProgramError(
                f"`{name}` is neither a function nor a definition",
                call.span,
                unknown_call(name, [*self.definitions, *self.library()]),
            )
        if len(self.active) >= 32:
            raise LimitError("calls nest more than 32 deep", call.span)
        self.done[name] = inline(found, self.definitions, self.library, (*self.active, name), self.done)
        check(self.done[name])  # on its own: a name that it lacks must not be found in the caller
        return self.done[name]

    def matched(self, call: ir.CallStatement) -> tuple[ir.Loops, dict[str, Expr]]:
        """The definition of a call without the optional tensors that it leaves out, and what it passes for the rest."""
        callee = self.definition(call)
        header = callee.header
        assert header is not None, "a definition has a header"
        given = {*(name for name, _ in zip(header.parameters, call.arguments, strict=False)), *dict(call.keywords)}
        missing = optional_tensors(callee).keys() - given
        if missing:
            callee = without(callee, missing)
            header = callee.header
            assert header is not None
        if len(call.targets) != len(header.outputs):
            raise ProgramError(
                f"{header.name} gives {len(header.outputs)} results, not {len(call.targets)}",
                call.span,
                f"write `{', '.join(o.tensor for o in header.outputs)} = {header.name}(...)`",
            )
        return callee, _match(call, header)

    def ellipses(self, caller: ir.Loops) -> Mapping[Hashable, Extent]:
        """What `...` stands for in the caller and in each call."""
        found = of_statements(caller)
        calls = [item for item in flat_items(caller.body) if isinstance(item, ir.CallStatement)]
        for call in calls:
            for parameter, value in self.pairs(call):
                if not found.passed(call, parameter, value):
                    raise _do_not_fit(call, parameter, value, found.rank(value.tensor))
        return found.extents([OWN, *(id(call) for call in calls)])

    def pairs(self, call: ir.CallStatement) -> list[tuple[ir.Access, ir.Access]]:
        """The tensors of a definition, and what a call has in their places."""
        found = in_their_places(call, *self.callees[id(call)])
        given = [(access, value) for access, value in found if isinstance(value, ir.Access)]
        return [(access, value) for access, value in given if access.indices or value in call.targets]

    def call(self, call: ir.CallStatement, blocks: tuple[str, ...]) -> tuple[ir.Item, ...]:
        callee, values = self.callees[id(call)]
        assert callee.header is not None
        for parameter in callee.header.arguments:
            _check_argument(call, callee.header, parameter, values[parameter.name], blocks)
        callee = self.expand(call, callee)
        binding = _Binding(self, callee, values, call, blocks)
        self.sizes += binding.sizes()
        self.batched = {**binding.batched(), **self.batched}
        return binding.body()

    def expand(self, call: ir.CallStatement, callee: ir.Loops) -> ir.Loops:
        """Writes `...` out, as far as it is known what it stands for."""
        if ir.BATCH not in callee.indices:
            return callee
        extent, pairs = self.extents[id(call)], self.pairs(call)
        if extent.count < 0:
            parameter, value = next((parameter, value) for parameter, value in pairs if parameter.batched)
            raise ProgramError(
                f"{show_access(value)} leaves {len(parameter.indices) - 1 + extent.count} axes for "
                f"{show_access(parameter)} of {call.function}",
                value.span or call.span,
                f"a call takes whole tensors, or slices of them: write `{value.tensor}`",
            )
        sliced = [value.tensor for parameter, value in pairs if parameter.batched and value.indices]
        if extent.open and sliced:
            raise ProgramError(
                f"the number of axes of {sliced[0]} is not known here, and {call.function} takes any",
                call.span,
                f"name its indices in a header: `def f({sliced[0]}[l,i,j]) -> ...`",
            )
        return spelled(callee, extent.count, extent.open) if extent.count or not extent.open else callee

    def index_names(
        self, callee: ir.Loops, values: Mapping[str, Expr], call: ir.CallStatement, blocks: tuple[str, ...]
    ) -> dict[str, str]:
        """The caller's own index where it runs over the same axis of an argument or of a result, a new name for all
        others."""
        assert callee.header is not None
        names = {ir.BATCH: ir.BATCH} if ir.BATCH in callee.indices else {}
        arguments = [(p.access, values[p.name]) for p in callee.header.arguments if isinstance(p, ir.Argument)]
        pairs = [(access, value, False) for access, value in arguments if isinstance(value, ir.Access)]
        pairs += [(o, target, True) for o, target in zip(callee.header.outputs, call.targets, strict=True)]
        for access, given, is_result in pairs:
            for axis, place in enumerate(access.indices):
                own = self.axes.get((given.tensor, axis + len(given.indices)))
                if is_result and own in self.sized:
                    continue  # two rules for one size, of which one may ask for the other
                if isinstance(place, ir.Index) and own and own not in blocks and own not in names.values():
                    names.setdefault(place.name, own)
        return {name: names.get(name) or self.fresh(name) for name in callee.indices}

    def fresh(self, name: str) -> str:
        """The name, or the next number behind it that is free."""
        new = name
        while new in self.taken:
            self.used[name] = self.used.get(name, 0) + 1
            new = f"{name}{self.used[name]}"
        self.taken.add(new)
        return new


def _do_not_fit(call: ir.CallStatement, parameter: ir.Access, value: ir.Access, rank: int | None) -> ProgramError:
    known = "another number of axes elsewhere" if rank is None else f"{rank} {'axis' if rank == 1 else 'axes'}"
    return ProgramError(
        f"{value.tensor} has {known}, which does not fit {show_access(parameter)} of {call.function}",
        value.span or call.span,
        f"pass what has {len(parameter.indices)} axes"
        if not parameter.batched
        else "`...` stands for the same axes in all that one call takes and gives",
    )


def _names_in_calls(caller: ir.Loops) -> set[str]:
    items = flat_items(caller.body)
    calls = [item for item in items if isinstance(item, ir.CallStatement)]
    nodes = [n for call in calls for root in roots(call) for n in ir.walk(root)]
    names = {item.index for item in items if isinstance(item, ir.Block)}
    names |= {n.tensor for n in nodes if isinstance(n, ir.Access)}
    return names | {n.name for n in nodes if isinstance(n, ir.Index)}


def _accumulates(callee: ir.Loops, tensor: str) -> bool:
    return any(s.target.tensor == tensor and s.operator != "=" for s in callee.statements)


def _axis_indices(caller: ir.Loops) -> dict[tuple[str, int], str]:
    """The index that runs over a whole axis, for the tensors that the caller itself reads or writes."""
    found = dict(bare_written(caller))
    for use in bare_uses(caller):
        if use.tensor not in caller.written and use.index != ir.BATCH:
            found.setdefault((use.tensor, use.axis), use.index)
    return found


def _match(call: ir.CallStatement, header: ir.Header) -> dict[str, Expr]:
    """Argument of the header -> what the call passes for it."""
    parameters = header.parameters
    names = list(parameters)
    if len(call.arguments) > len(names):
        count = f"{len(names)} argument{'' if len(names) == 1 else 's'}"
        raise ProgramError(
            f"{header.name} takes {count}, not {len(call.arguments)}",
            call.span,
            f"its arguments are {', '.join(names)}",
        )
    passed: dict[str, Expr] = dict(zip(names, call.arguments, strict=False))
    for name, value in call.keywords:
        known = name in names or any(name == parameter.name for parameter in header.arguments)
        if not known or name in passed:
            problem = "gets twice its argument" if known else "has no argument"
            raise ProgramError(f"{header.name} {problem} {name}", call.span, f"its arguments are {', '.join(names)}")
        passed[name] = value
    values: dict[str, Expr] = {}
    for name, parts in parameters.items():
        if name in passed:
            values |= _each_part(call, name, [part.name for part in parts], passed[name])
        values |= {part.name: passed[part.name] for part in parts if part.name in passed and part.name != name}
    for parameter in header.arguments:
        if parameter.name not in values and parameter.default is not None:
            default = parameter.default  # of a static integer, perhaps another one that stands before it
            values[parameter.name] = values[default] if isinstance(default, str) else ir.Number(default)
    missing = [name for name, parts in parameters.items() if any(part.name not in values for part in parts)]
    if missing:
        raise ProgramError(
            f"{header.name} lacks its argument {missing[0]}", call.span, f"its arguments are {', '.join(names)}"
        )
    return values


def _each_part(call: ir.CallStatement, name: str, parts: list[str], value: Expr) -> dict[str, Expr]:
    """`stride=2` and `stride=(2, 1)` for each of the parts."""
    if not isinstance(value, ir.Several):
        return dict.fromkeys(parts, value)
    if len(parts) != len(value.values):
        each = f", or one for each of {', '.join(parts)}" if len(parts) > 1 else ""
        raise ProgramError(
            f"argument {name} of {call.function} is one value{each}, not {len(value.values)}",
            value.span or call.span,
            f"write `{name}=({', '.join('1' for _ in parts)})`" if each else "pass one of them",
        )
    return dict(zip(parts, value.values, strict=True))


def _check_argument(
    call: ir.CallStatement,
    header: ir.Header,
    parameter: ir.Argument | ir.StaticDeclaration,
    value: Expr,
    blocks: tuple[str, ...],
) -> None:
    where = f"argument {parameter.name} of {header.name}"
    if isinstance(parameter, ir.StaticDeclaration):
        if not is_constant(value) or (isinstance(value, ir.Number) and not isinstance(value.value, int)):
            raise ProgramError(f"{where} is a static integer", value.span or call.span, "pass a whole number or a size")
    elif parameter.access.indices and not isinstance(value, ir.Access):
        raise ProgramError(
            f"{where} is the tensor {show_access(parameter.access)}",
            value.span or call.span,
            "pass a tensor's name; compute an expression in a statement of its own first",
        )
    else:
        known = {*blocks, *(i for target in call.targets for i in ir.index_names(target))}
        hidden = next((i for i in sorted(ir.index_names(value)) if i not in known), None)
        if hidden:
            raise ProgramError(
                f"{where} would bring the index {hidden} into the call, and sum over it",
                value.span or call.span,
                "compute it in a statement of its own first",
            )


class _Binding:
    """One call: the callee's names -> the caller's."""

    def __init__(
        self,
        inliner: _Inliner,
        callee: ir.Loops,
        values: dict[str, Expr],
        call: ir.CallStatement,
        blocks: tuple[str, ...],
    ) -> None:
        assert callee.header is not None
        self.callee = callee
        self.values = values
        self.header = callee.header
        self.indices = inliner.index_names(callee, values, call, blocks)
        self.own = {name for name, new in self.indices.items() if new in inliner.axes.values()}  # the caller's indices
        around = tuple(ir.Index(name) for name in blocks)  # a local tensor in a block has an element for each step
        self.tensors: dict[str, ir.Access] = {}
        self.copied: list[ir.Statement] = []
        written = bare_written(callee)
        for output, target in zip(self.header.outputs, call.targets, strict=True):
            self.tensors[output.tensor] = target
            if target.tensor in inliner.assigned and _accumulates(callee, output.tensor):
                own = ir.Access(inliner.fresh(f"{self.header.name.replace('.', '_')}_{output.tensor}"), around)
                self.tensors[output.tensor] = own
                places = tuple(self.placed_bare(e) for e in output.indices)
                copy = ir.Access(target.tensor, (*target.indices, *places), span=call.span)
                value = ir.Access(own.tensor, (*around, *places), span=call.span)
                self.copied.append(ir.Statement(copy, "=", value, span=call.span))
            for axis, place in enumerate(output.indices):
                if isinstance(place, ir.Index) and place.name != ir.BATCH and not target.indices:
                    name = written.get((output.tensor, axis), place.name)  # a header may have a name of its own for it
                    inliner.axes.setdefault((target.tensor, axis), self.indices[name])
        for name in callee.written:
            if name not in self.tensors and name not in values:
                self.tensors[name] = ir.Access(inliner.fresh(f"{self.header.name.replace('.', '_')}_{name}"), around)
        self.read = {  # an argument that the callee updates is read under its own name until then
            p.name: v
            for p in self.header.arguments
            if isinstance(p, ir.Argument) and isinstance(v := values[p.name], ir.Access)
        }
        self.scalars = {
            p.name: values[p.name]
            for p in self.header.arguments
            if isinstance(p, ir.Argument) and not isinstance(values[p.name], ir.Access)
        }
        self.statics = any(isinstance(p, ir.StaticDeclaration) for p in self.header.arguments)
        self.updated: set[str] = set()
        self.span = call.span

    def _prefix(self, tensor: str) -> ir.Access | None:
        if tensor in self.read and (tensor not in self.callee.updated or tensor not in self.updated):
            return self.read[tensor]
        return self.tensors.get(tensor)

    def change(self, node: Expr) -> Expr:
        match node:
            case ir.Index(name=name) if name in self.indices:
                return ir.Index(self.indices[name])
            case ir.Size(index=index) if index in self.indices:
                return ir.Size(self.indices[index])
            case ir.Static(name=name):
                return self.values[name]
            case ir.AxisSize(tensor=tensor, axis=axis):
                prefix = self._prefix(tensor)
                shift = len(prefix.indices) if prefix and axis >= 0 else 0
                return node if prefix is None else ir.AxisSize(prefix.tensor, axis + shift)
            case ir.Access(tensor=tensor) if tensor in self.scalars:
                return self.scalars[tensor]
            case ir.Access(tensor=tensor, indices=indices):
                prefix = self._prefix(tensor)
                return (
                    node
                    if prefix is None
                    else ir.Access(prefix.tensor, (*prefix.indices, *indices), span=prefix.span or self.span)
                )
        return node

    def placed(self, node: Expr) -> Expr:
        """An expression of the callee, in the caller's names."""
        parts = ir.children(node)
        changed = self.places(parts) if isinstance(node, ir.Access) else tuple(map(self.placed, parts))
        made = self.change(node if all(map(is_, parts, changed)) else ir.rebuild(node, changed))
        if self.statics and any(isinstance(part, ir.Static) for part in ir.walk(node)):
            return simplified(made)  # `1*p-0` is p
        return made

    def places(self, places: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """What stands in a bracket: only what was a bare index becomes one."""
        return tuple(self.placed(e) if isinstance(e, ir.Index) else not_bare(self.placed(e)) for e in places)

    def statement(self, statement: ir.Statement) -> ir.Statement:
        value = self.placed(statement.value)
        guard = None if statement.guard is None else self.placed(statement.guard)
        places = self.places(statement.target.indices)
        name = statement.target.tensor
        self.updated.add(name)
        prefix = self.tensors.get(name) or self.read[name]
        target = ir.Access(prefix.tensor, (*prefix.indices, *places), span=self.span)
        return ir.Statement(target, statement.operator, value, guard, span=self.span)

    def placed_bare(self, node: Expr) -> Expr:
        name = ir.bare(node)
        assert name is not None, "a header names indices"
        return ir.Index(self.indices[name])

    def body(self) -> tuple[ir.Item, ...]:
        def items(body: tuple[ir.Item, ...]) -> tuple[ir.Item, ...]:
            return tuple(
                ir.Block(self.indices[i.index], items(i.body), i.down) if isinstance(i, ir.Block) else self.statement(i)
                for i in body
                if isinstance(i, ir.Block | ir.Statement)
            )

        return (*items(self.callee.body), *self.copied)

    def batched(self) -> dict[str, ir.Access]:
        """The arguments that have `...`, as the caller may declare them."""
        arguments = [p for p in self.header.arguments if isinstance(p, ir.Argument) and p.name in self.read]
        accesses = [ir.transform(p.access, self.change) for p in arguments if p.access.batched]
        return {a.tensor: a for a in accesses if isinstance(a, ir.Access) and ir.bare(a.indices[0]) == ir.BATCH}

    def sizes(self) -> list[ir.SizeDeclaration]:
        """The callee's declarations, and what its header says of sizes that no statement of its body shows."""
        found = [
            ir.SizeDeclaration(ir.transform(d.subject, self.change), self.placed(d.value))  # type: ignore[arg-type]
            for d in self.callee.sizes
        ]
        declared = {d.subject for d in self.callee.sizes}
        shown = {
            (a.tensor, k, ir.bare(e)) for s in self.callee.statements for a in s.reads for k, e in enumerate(a.indices)
        }
        for parameter in self.header.arguments:
            if not isinstance(parameter, ir.Argument):
                continue
            for axis, place in enumerate(parameter.access.indices):
                name = ir.bare(place)
                if (
                    name in (None, ir.BATCH)
                    or str(name) in self.own
                    or (parameter.name, axis, name) in shown
                    or ir.Size(str(name)) in declared
                ):
                    continue
                subject, value = ir.Size(str(name)), ir.AxisSize(parameter.name, axis)
                found.append(ir.SizeDeclaration(ir.transform(subject, self.change), ir.transform(value, self.change)))  # type: ignore[arg-type]
        written = bare_written(self.callee)
        sized = infer(self.callee).index
        for output in self.header.outputs:
            for axis, place in enumerate(output.indices):
                name = ir.bare(place)
                if name == ir.BATCH or sized.get(str(name)) == ir.AxisSize(output.tensor, axis):
                    continue  # the axis says how long the index is
                if output.tensor in self.read or written.get((output.tensor, axis)) == name:
                    continue
                prefix = self.tensors[output.tensor]
                subject_axis = ir.AxisSize(prefix.tensor, axis + len(prefix.indices))
                found.append(ir.SizeDeclaration(subject_axis, ir.transform(ir.Size(str(name)), self.change)))
        return found
