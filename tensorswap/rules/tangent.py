"""Tangent: program -> program. Beside every statement stands the one that carries its derivative along a direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import DerivativeError
from ..language import ir
from ..language.build import conjunction, conjuncts, is_zero, multiply
from ..language.render import access as show_access
from ..language.stages import tell
from .activity import check_wrt, depends_smoothly, integer_uses, refuse_updates
from .complete_reads import complete_when_read
from .derived_inside import completed
from .derived_names import next_suffix
from .differentiate import tangent as expression_tangent
from .inherited_names import NOTHING, pattern, still_known
from .reduce import Helpers
from .shapes import Shapes
from .simplify import held_values, merge_doubles, remove_dead, reuse, with_outputs
from .solve import FreshIndices
from .unnest import unnest


@dataclass
class TangentBuilder:
    forward: ir.Loops
    dots: dict[str, str]
    fresh: FreshIndices
    helpers: Helpers
    shapes: Shapes

    def items(self, item: ir.Statement, blocks: tuple[ir.Block, ...]) -> Iterator[ir.Item]:
        """A statement and its tangent."""
        own = any(a.tensor == item.target.tensor for a in item.reads)
        if own and item.operator != "=":  # the tangent needs the value that this statement is about to change
            yield from self.statement(item, blocks)
            yield item
            return
        yield item
        group = self.helpers.meeting(item) if item.operator in ("max=", "min=", "*=") else [item]
        if item.operator in ("max=", "min=", "*=") and not blocks:
            self.check_updates(item, group)
            if item is group[-1]:  # the winner, or the product, is known when the last of them has run
                for member in group:
                    yield from self.statement(member, blocks)
        else:
            yield from self.statement(item, blocks)

    def statement(self, item: ir.Statement, blocks: tuple[ir.Block, ...]) -> Iterator[ir.Statement]:
        """The tangent of one statement, with what its reduction needs in front of it."""
        if item.target.tensor not in self.dots or item.operator.startswith("arg"):
            return
        value = expression_tangent(item.value, self.dots)
        if value is None or is_zero(value):
            return
        condition = None
        before = len(self.helpers.statements)
        if item.operator in ("max=", "min=", "*="):
            self.check_whole(item, blocks)
            if item.operator == "*=":
                others = self.helpers.others(item)
                value = value if others is None else multiply(others, value)
            else:
                condition = self.helpers.winner(item)
        operator = item.operator if item.operator in ("=", "-=") else "+="
        target = ir.Access(self.dots[item.target.tensor], item.target.indices)
        if item.operator == "=":
            value = reuse(value, held_values(ir.Loops(body=(item,))), frozenset(conjuncts(item.guard)))
        made = ir.Statement(target, operator, value, conjunction((item.guard, condition)))
        yield from self.helpers.statements[before:]
        yield completed(item, made, blocks, self.shapes)

    def check_updates(self, item: ir.Statement, group: list[ir.Statement]) -> None:
        """The tangents of a group stand behind its last member: what an earlier one read must still be there."""
        changed = self.forward.updated & {name for member in group for name in ir.tensors_read(member)}
        if len(group) > 1 and changed:
            raise DerivativeError(
                f"{sorted(changed)[0]} is updated while `{item.operator}` reads it",
                item.span,
                "write the new value under a name of its own",
            )

    def check_whole(self, item: ir.Statement, blocks: tuple[ir.Block, ...]) -> None:
        """`max=` and `*=` have a derivative when they are complete: no step may read what a later one changes."""
        if not blocks:
            return
        if any(block.index not in ir.index_names(item.target) for block in blocks):
            raise DerivativeError(
                f"{show_access(item.target)} is accumulated with `{item.operator}` over the steps of `for "
                f"{blocks[-1].index}`; its derivative is known only when it is complete",
                item.span,
                "take the statement out of the block, or give the target the block's index",
            )
        group = self.helpers.meeting(item)
        for reader, around in self.forward.located:
            for access in reader.reads:
                if access.tensor == item.target.tensor and not complete_when_read(
                    self.forward, (reader, around), access
                ):
                    raise DerivativeError(
                        f"{show_access(access)} is read before `{item.operator}` has completed it",
                        access.span,
                        "read it after its last statement",
                    )
        if len(group) > 1:
            raise DerivativeError(
                f"several statements in a block accumulate into {item.target.tensor} with `{item.operator}`",
                item.span,
                "write them as one statement",
            )


def tangent(loops: ir.Loops, wrt: Sequence[str], only: Sequence[str] | None = None) -> ir.Loops:
    """Takes X.dot for each of `wrt`, gives Y.dot for each output (or those of `only`)."""
    wrt = check_wrt(loops, wrt)
    loops = unnest(loops)
    suffix = next_suffix(loops, "dot")
    reached = depends_smoothly(loops, wrt)
    refuse_updates(loops, reached)
    dots = {name: f"{name}.{suffix}" for name in reached}
    fresh = FreshIndices(set(loops.names))
    making = TangentBuilder(loops, dots, fresh, Helpers(loops, fresh, after=False), Shapes(loops, fresh=fresh))
    making.shapes.base |= {dot: name for name, dot in dots.items()}
    body = ir.rewrite(loops.body, making.items)
    making.shapes.base |= making.helpers.like
    integers = integer_uses(loops)
    outputs = [name for name in (loops.outputs if only is None else only) if name not in integers]
    if not outputs:
        raise DerivativeError("the program has no output with a derivative", hint="an argmax= is an integer")
    for name in outputs:
        if name not in dots:  # independent of wrt: the derivative is zero, said so
            dots[name] = f"{name}.{suffix}"
            making.shapes.base[dots[name]] = name
            body = (*body, ir.Statement(ir.Access(dots[name], making.shapes.whole(name)), "=", NOTHING))
    known = {**still_known(loops), **{dots[name]: pattern(loops, name) for name in wrt}}
    derived = ir.Loops(body=body, statics=loops.statics, known=known)
    if loops.header:
        given, results = [(x, dots[x]) for x in wrt], [(y, dots[y]) for y in outputs]
        derived = replace(derived, header=making.shapes.header(loops.header, "tangent", given, results))
    made = [dots[name] for name in outputs]

    def finished(loops: ir.Loops) -> ir.Loops:
        return with_outputs(making.shapes.declare(loops), made)

    tell("tangent", lambda: finished(derived))
    derived = merge_doubles(derived, made)
    tell("merge_doubles", lambda: finished(derived))
    derived = remove_dead(derived, made)
    tell("remove_dead", lambda: finished(derived))
    return finished(derived)
