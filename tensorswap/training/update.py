"""Update: a model and an optimiser -> the program of one training step, which anyone can read and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .. import library
from ..errors import ArgumentError
from ..language import build, ir
from ..language.given_numbers import positive, shown
from ..language.hints import closest
from ..lazy import cached_property
from ..program import Program
from ..rules.adjoint import derive
from ..rules.inline import inline
from .optimizers import Optimizer

FOLDED = {"+": build.add, "-": build.subtract, "*": build.multiply, "/": build.divide}


@dataclass(frozen=True)
class Update:
    """One step: takes parameters, state, `lr`, `step` and a batch; gives loss, metrics, new parameters and state."""

    model: Program
    loss: str
    metrics: tuple[str, ...]
    parameters: tuple[str, ...]
    optimizer: Optimizer
    clip: float | None

    @cached_property
    def state(self) -> dict[str, dict[str, str]]:
        """The names of an optimiser's state, for each parameter: that of `m` for W is W_m."""
        taken = set(self.model.loops.names)
        kinds = {name: self.optimizer.state(self.model.loops.ranks[name]) for name in self.parameters}
        return {name: {kind: ir.claim(f"{name}_{kind}", taken) for kind in own} for name, own in kinds.items()}

    @cached_property
    def results(self) -> tuple[str, ...]:
        """What a step gives beside new parameters and state."""
        return (self.loss, *self.metrics)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        kept = [name for parts in self.state.values() for name in parts.values()]
        return (*self.results, *self.parameters, *kept)

    @cached_property
    def program(self) -> Program:
        return Program(self._derive(self.model.loops), self.model, self._derive)

    def numbers(self, rate: float, step: int) -> dict[str, float]:
        """The rate and the number of a step (from 1 on), if they are asked for: a whole number if the model does."""
        number = int(step) if "step" in self.model.inputs else float(step)
        return {n: v for n, v in {"lr": float(rate), "step": number}.items() if n in self.program.inputs}

    def _derive(self, loops: ir.Loops) -> ir.Loops:
        gradient = derive(loops, self.parameters, [self.loss], unit=True, keep=[self.loss, *self.metrics])[0]
        step = replace(gradient, body=(*gradient.body, *self._updates), returns=None)
        return step if step.outputs == self.outputs else replace(step, returns=self.outputs)

    @cached_property
    def gradient(self) -> Program:
        """The derivative that the step holds, by itself."""
        return self.model.grad(self.loss, self.parameters)

    @cached_property
    def _updates(self) -> tuple[ir.Item, ...]:
        """The statements of all updates: they know the gradients by their names alone."""
        taken = {*self.model.loops.names, *self.outputs, "lr", "step"}
        ranks = self.model.loops.ranks
        places = {n: tuple(ir.Index(ir.claim(f"{n}_{k}", taken)) for k in range(ranks[n])) for n in self.parameters}
        gradients = {name: ir.Access(f"{name}.grad", places[name]) for name in self.parameters}
        body: list[ir.Item] = [ir.Statement(gradients[n], "=", ir.Access(n, places[n])) for n in self.parameters]
        kept = len(body)  # these only tell the number of axes, and go
        if self.clip is not None:
            square, scale = (ir.Access(ir.claim(f"clip_{name}", taken)) for name in ("square", "scale"))
            body += [ir.Statement(square, "+=", ir.Binary("**", g, ir.Number(2))) for g in gradients.values()]
            norm = ir.Binary("+", ir.Call("sqrt", (square,)), ir.Number(1e-6))
            body.append(ir.Statement(scale, "=", build.minimum(build.ONE, ir.Binary("/", ir.Number(self.clip), norm))))
            for name, gradient in gradients.items():
                gradients[name] = ir.Access(ir.claim(f"{name}_clipped", taken), places[name])
                body.append(ir.Statement(gradients[name], "=", build.multiply(scale, gradient)))
        for name in self.parameters:
            body.append(self.optimizer.call(name, gradients[name].tensor, ranks[name], self.state[name]))
        own = ir.Loops(tuple(body), known=dict.fromkeys(taken))  # names that the statements of a call must not take
        made = inline(own, {}, library.definitions)

        def change(node: ir.Expr) -> ir.Expr:
            match node:
                case ir.Binary(operator=operator, left=left, right=right) if operator in FOLDED:
                    return FOLDED[operator](left, right)  # an option of 0 leaves no trace
            return node

        return ir.map_items(made.body[kept:], lambda s: ir.map_statement(s, change))


def update(
    model: Program,
    loss: str,
    parameters: Sequence[str],
    optimizer: Optimizer,
    clip: float | None,
    metrics: Sequence[str],
) -> Update:
    """Checks the names first."""
    written = model.loops.written
    if isinstance(metrics, str) or not isinstance(metrics, Sequence):
        raise ArgumentError(f"metrics is a list of names, not {shown(metrics)}", hint='metrics=["accuracy"]')
    for kind, names in (("the loss", [loss]), ("a metric", metrics)):
        for name in names:
            if not isinstance(name, str) or name not in written:
                hint = closest(name, written, "it computes")
                raise ArgumentError(f"{kind} is {shown(name)}, which the program does not compute", hint=hint)
            if model.loops.ranks.get(name):
                raise ArgumentError(f"{kind} {name} has axes", hint=f"add them up: `total += {name}[...]`")
    if clip is not None:
        clip = positive("clip is the largest norm of the gradient: it", clip, hint="clip=1.0")
    kept = tuple(dict.fromkeys(m for m in metrics if m != loss))
    return Update(model, loss, kept, tuple(parameters), optimizer, clip)


def shapes_of_state(step: Update, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    found = {}
    for name, parts in step.state.items():
        axes = step.optimizer.state(len(shapes[name]))
        for kind, own in parts.items():
            along = axes[kind]
            found[own] = shapes[name] if along is None else tuple(shapes[name][k] for k in along)
    return found
