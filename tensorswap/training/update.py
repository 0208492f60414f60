"""Update: a model and an optimiser -> the program of one training step, as text that anyone can read and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import ArgumentError
from ..language import build, ir
from ..language.hints import closest
from ..lazy import cached_property
from ..program import Program, program
from ..rules.adjoint import derive
from .numbers import positive, shown
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
        found: dict[str, dict[str, str]] = {}
        for name in self.parameters:
            found[name] = {}
            for kind in self.optimizer.state(self.model.loops.ranks[name]):
                found[name][kind] = ir.fresh(f"{name}_{kind}", taken)
                taken.add(found[name][kind])
        return found

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
        lines = []
        gradients = {name: f"{name}.grad" for name in self.parameters}
        ranks = self.model.loops.ranks
        places = {name: ",".join(f"{name}_{k}" for k in range(ranks[name])) for name in self.parameters}
        access = {name: f"[{places[name]}]" if ranks[name] else "" for name in self.parameters}
        lines += [f"{gradients[name]}{access[name]} = {name}{access[name]}" for name in self.parameters]
        kept = len(lines)  # these only tell the number of axes, and go
        if self.clip is not None:
            lines += [f"clip_square += {gradients[name]}{access[name]} ** 2" for name in self.parameters]
            lines.append(f"clip_scale = min(1, {self.clip!r} / (sqrt(clip_square) + 1e-6))")
            for name in self.parameters:
                lines.append(f"{name}_clipped{access[name]} = clip_scale * {gradients[name]}{access[name]}")
                gradients[name] = f"{name}_clipped"
        for name in self.parameters:
            lines.append(self.optimizer.call(name, gradients[name], ranks[name], self.state[name]))
        text = "\n".join(lines).replace(".grad", "_gradient")
        made = program(text, [n for n in self.outputs if n not in self.results]).loops
        names = {f"{name}_gradient": f"{name}.grad" for name in self.parameters}
        taken = set(self.model.loops.names)
        for name in made.names - set(self.outputs) - names.keys() - {"lr", "step"}:
            names[name] = ir.fresh(name, taken)
            taken.add(names[name])

        def change(node: ir.Expr) -> ir.Expr:
            match node:
                case ir.Access(tensor=tensor) | ir.AxisSize(tensor=tensor):
                    return replace(node, tensor=names.get(tensor, tensor))
                case ir.Index(name=name):
                    return ir.Index(names[name])
                case ir.Size(index=index):
                    return ir.Size(names[index])
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
                raise ArgumentError(
                    f"{kind} is {shown(name)}, which the program does not compute",
                    hint=closest(str(name)[:80], list(written)) or f"it computes {', '.join(written)}",
                )
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
