"""Faults in the passes of a plan."""

from __future__ import annotations

from .fault import Fault

NESTED = "tests/test_nested_blocks.py::"
EDGES = "tests/test_edges_of_plans.py::"
PASSES = "tests/test_passes.py::"
REST = "tests/test_blocks_at_rest.py::"
ROLLING = "tests/test_rolling_buffers.py::"

FAULTS = (
    Fault(
        "a shared product drops the sum", "dropped factor", "plan/contraction_order.py",
        '            first = ir.Statement(step.held, "+=", step.final.product, final.guard)\n'
        "            last = replace(final, value=scaled(step.held, step.final.scale))\n",
        "            leaves, scale = self.leaves(final.value)\n"
        '            first = ir.Statement(step.held, "+=", product(leaf.value for leaf in leaves), final.guard)\n'
        "            last = replace(final, value=scaled(step.held, scale))\n",
        (PASSES + "test_a_shared_product_keeps_every_factor[a number summed up]",),
        "Z lacked the sum of A*B: a fault that users met",
    ),
    Fault(
        "a product of an updated tensor is shared", "value reused", "plan/contraction_order.py",
        "return value, tuple((name, self.written[name]) for name in tensors)", "return value, ()",
        (EDGES + "test_what_an_update_changes_is_computed_again[a product]",),
        "the same factors at another moment are another product",
    ),
    Fault(
        "a diagonal and a whole tensor are one sum", "swapped index", "plan/merge.py",
        "if len(set(names.values())) < len(names):\n        return None", "if False:\n        return None",
        (PASSES + "test_programs_after_each_pass[merged after a diagonal]",),
        "two indices that meet in the first statement do not meet in the second",
    ),
    Fault(
        "the guard of a scatter is sifted out", "missing guard", "plan/gathered_rows.py",
        "return replace(moved, guard=conjunction([moved.guard, local.guard]))", "return moved",
        (PASSES + "test_a_gathered_element_of_each_row[guarded]",),
        "labels that a guard leaves out would count",
    ),
    Fault(
        "a recurrence keeps a slice too few", "off by one", "plan/step_slices.py",
        "return 1 if self.in_place else self.last - self.first + 1",
        "return 1 if self.in_place else max(self.last - self.first, 1)",
        (EDGES + "test_programs_at_their_edges[two steps back beside the new one]",),
        "a step reads what it has just written over",
    ),
    Fault(
        "an old slice is replaced before its last reader", "skipped check", "plan/step_slices.py",
        "if behind or (elsewhere and statement is writer):", "if elsewhere and statement is writer:",
        ("tests/test_register_blocks.py::test_all_lengths[the old one is read behind-float64]",),
        "a step would read the new value for the old one",
    ),
    Fault(
        "a new slice replaces one of which others read more", "skipped check", "plan/step_slices.py",
        "if behind or (elsewhere and statement is writer):", "if behind:",
        ("tests/test_register_blocks.py::test_all_lengths[a neighbour-float64]",),
        "a point would read what its neighbour has made of it",
    ),
    Fault(
        "a block rests though its step changes what it asks", "skipped check", "plan/at_rest.py",
        "return None if read & changed else condition", "return condition",
        (REST + "test_when_a_block_is_at_rest[a condition on what a step changes]",),
        "a condition that is asked behind the step is not the one that the step had",
    ),
    Fault(
        "a block rests though one of its states goes on", "skipped check", "plan/at_rest.py",
        "any(k is False for k in kept)", "all(k is False for k in kept)",
        (REST + "test_compiled_and_interpreted_agree[one goes on]",),
        "the steps that are left would have changed it",
    ),
    Fault(
        "a block rests though its steps count", "skipped check", "plan/at_rest.py",
        "if any(block.index in statement.indices for statement in statements):", "if not statements:",
        (REST + "test_when_a_block_is_at_rest[each step asks for something else]",),
        "a later step would have asked for something else",
    ),
    Fault(
        "part of a tensor counts for all of it", "off by one", "plan/at_rest.py",
        "if not alone or (len(", "if alone or (len(",
        (REST + "test_when_a_block_is_at_rest[a root]",),
        "what a step has left in the other part would be forgotten",
    ),
    Fault(
        "a part that reads another begins a slice", "skipped check", "plan/rolling_buffers.py",
        "item.guard is not None or fold.tensor in ir.tensors_read(item):", "item.guard is not None:",
        (ROLLING + "test_slices_that_begin_by_parts[one is read too early]",),
        "it would read what an older step has left",
    ),
    Fault(
        "windows are read beside each other, not over each other", "swapped index", "kernel/tile.py",
        "pairs = ((left(row, column if window else 0), right(0 if alone else column)) for row, column in elements)",
        "pairs = ((left(row, 0), right(0 if alone else column)) for row, column in elements)",
        ("tests/test_window_sums.py::test_windows[depthwise-float64]",),
        "all columns of a window would have the sums of the first",
    ),
    Fault(
        "what short blocks hold is not written back", "value reused", "lower/kernel.py",
        "[*before, whole, *after]", "[*before, whole]",
        ("tests/test_short_blocks.py::test_compiled_and_interpreted_agree[a few components]",
         "tests/test_blocks_at_rest.py::test_compiled_and_interpreted_agree[a root]"),
        "who reads a tensor behind the block would find what was there before it",
    ),
    Fault(
        "the place of a winner forgets the step", "value reused", "plan/rolling_buffers.py",
        " or _counts_steps(found):", ":",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[the step of a winner in a rolling buffer]",),
        "an argmax over steps would be refused, or 0",
    ),
    Fault(
        "a slice that the last step does not make is read", "skipped check", "plan/rolling_buffers.py",
        "if fold.unwritten and any(", "if not fold and any(",
        (ROLLING + "test_slices_that_are_kept[the new one is read]",),
        "it would hold an old slice instead of zeros",
    ),
    Fault(
        "several steps at the end make no slice", "skipped check", "plan/step_slices.py",
        "holds == [False, True, True]", "holds[0] is False",
        (ROLLING + "test_slices_that_are_kept[two steps make none]",),
        "they would find an old slice instead of zeros",
    ),
    Fault(
        "who reads an old slice overtakes what it needs", "skipped check", "plan/readers_first.py",
        "if not any(_minds(item, reader, slices.tensor) for item in items[first:last]):", "if items:",
        (ROLLING + "test_slices_that_are_kept[who reads it behind needs what comes before]",),
        "a statement would read what has not been made yet",
    ),
    Fault(
        "what is read before it is made keeps one slice", "skipped check", "plan/rolling_buffers.py",
        "if not _newest_behind(work, fold, writer):", "if fold.slices > 1 and not _newest_behind(work, fold, writer):",
        (EDGES + "test_programs_at_their_edges[read before its statement]",),
        "the slice still holds the last step",
    ),
    Fault(
        "a slice of an outer step is rolled though others read it", "skipped check", "plan/rolling_buffers.py",
        "if name in kept or not _is_apart(name, around, count[name]):", "if name in kept:",
        (NESTED + "test_what_others_read_stays[read behind the blocks]",),
        "what a block leaves for statements behind it would be gone",
    ),
    Fault(
        "a slice that all steps share does not begin with zeros", "missing guard", "plan/rolling_buffers.py",
        "*(zeros if item is block else ())", "*(zeros if item is None else ())",
        (NESTED + "test_what_steps_have_for_themselves_is_kept_once[a sum over steps]",),
        "a step would add to what the one before has left",
    ),
    Fault(
        "a guarded statement begins a slice", "skipped check", "plan/rolling_buffers.py",
        "first.target.tensor != fold.tensor or first.guard is not None or", "first.target.tensor != fold.tensor or",
        (NESTED + "test_what_others_read_stays[part of a slice]",),
        "elements that the guard leaves out would keep the value of an older step",
    ),
    Fault(
        "slices with a gap between them need no first value", "skipped check", "plan/first_slices.py",
        "if first != behind:", "if first < behind:",
        (NESTED + "test_slices_that_are_written_one_after_the_other[a gap]",),
        "nothing writes the slice between them, and a sum would read what lay there",
    ),
    Fault(
        "a statement that skips slices writes them first", "skipped check", "plan/first_slices.py",
        "or not before.covers(writer.slices):", "or False:",
        (NESTED + "test_statements_that_store_where_they_would_add[the second more often]",),
        "a statement behind the block would store over what the second has added",
    ),
    Fault(
        "slices may be read before they are written", "skipped check", "plan/first_slices.py",
        "return firsts if firsts and _is_written_when_read(loops, places, known, name) else set()", "return firsts",
        (NESTED + "test_slices_that_are_written_one_after_the_other[read too early]",),
        "a step would read what lay there, and not zero",
    ),
    Fault(
        "an operand divides where a guard would not", "missing guard", "plan/operands.py",
        "(open_uses or divides_by_values(factor))", "open_uses",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[a division that a guard hides from a product]",),
        "a right program would be refused for a division that it does not make",
    ),
    Fault(
        "any value bounds a loop", "skipped check", "language/bounds.py",
        " or not _counts(other):", ":",
        ("tests/test_ragged_expressions.py::test_whole_numbers_of_any_kind[a power-a loop]",),
        "a power was taken for the number itself",
    ),
    Fault(
        "numbers that are read are held one by one", "off by one", "language/bounds.py",
        "bound = subtract(_held(other), form.without(index).expression())",
        "bound = subtract(ir.transform(other, lambda n: _held(n) if isinstance(n, ir.Access) else n), "
        "form.without(index).expression())",
        ("tests/test_ragged_expressions.py::test_whole_numbers_of_any_kind[a remainder-a loop]",),
        "the remainder of a large number would be that of another one",
    ),
    Fault(
        "a tile counts with any number of the text", "skipped check", "lower/roles.py",
        "abs(n.value) > SMALL for n in", "abs(n.value) > LARGE**2 for n in",
        ("tests/test_ragged_expressions.py::test_whole_numbers_of_any_kind[a large number in the text-a product]",),
        "the number that is read would be held below it",
    ),
    Fault(
        "a padded copy is one too short", "off by one", "plan/pad.py",
        'draft.index("padded", last - first + 1)', 'draft.index("padded", last - first)',
        ("tests/test_compiled.py::test_a_padded_copy_stays_within_the_callers_array",),
        "the last window would read beyond the copy",
    ),
    Fault(
        "a lifted sum forgets what its guard asks", "missing guard", "plan/invariant_sums.py",
        " | (ir.index_names(statement.guard) if statement.guard else frozenset())", "",
        (EDGES + "test_programs_at_their_edges[a lifted sum under a guard of its target]",),
        "a guard too depends on indices",
    ),
    Fault(
        "a copy is forwarded past an update", "value reused", "plan/forward.py",
        "if source.tensor in loops.updated or any(s.target.tensor == source.tensor for s in later):",
        "if False:",
        (EDGES + "test_what_an_update_changes_is_computed_again[a copy]",),
        "a copy is made because the original will change",
    ),
    Fault(
        "an update writes zeros where its guard fails", "missing guard", "plan/guards_to_selects.py",
        "return once and target.tensor not in loops.updated and all(", "return once and all(",
        (PASSES + "test_an_update_keeps_what_its_guard_leaves_out[W[i] = 2 * W[i] if W[i] > 0]",),
        "what was there before stays there",
    ),
    Fault(
        "two indices get one name", "swapped index", "plan/index_names.py",
        "or index in found or name in found.values():", "or index in found:",
        (PASSES + "test_programs_after_each_pass[named crosswise]",),
        "a product becomes a diagonal",
    ),
    Fault(
        "a function of an updated tensor is held", "value reused", "plan/shared_values.py",
        "key = (node, versions), statement.guard", "key = (node, ()), statement.guard",
        (EDGES + "test_what_an_update_changes_is_computed_again[a function]",),
        "the same call at another moment is another value",
    ),
    Fault(
        "a value is held though its block still adds to it", "value reused", "plan/shared_values.py",
        "not all(complete_when_read(self.draft.loops, place, a) for a in own)", "False",
        ("tests/test_shared_values.py::test_what_changes_is_computed_again[added up by the steps]",),
        "what stands behind the block would read the sum of its first steps",
    ),
    Fault(
        "what a block changes is held before it", "value reused", "plan/shared_values.py",
        "own = [a for a in reads if blocks and a.tensor in moment.writes]", "own: list[ir.Access] = []",
        ("tests/test_shared_values.py::test_what_changes_is_computed_again[changed by each step]",),
        "every step would have the value of the first",
    ),
    Fault(
        "a choice of each term is made for the sum", "wrong rule", "plan/contraction_order.py",
        "ir.index_names(value.condition).intersection(ir.candidates(statement))", "False",
        ("tests/test_gathered_products.py::test_values_and_gradients[a choice of plain terms]",),
        "terms that a condition leaves out would be added",
    ),
    Fault(
        "inside reaches one too far", "off by one", "plan/compare_inside.py",
        "subtract(Number(extent - 1), known)", "subtract(Number(extent), known)",
        ("tests/test_compiled.py::test_fixed_programs_and_their_adjoints[conv1d_strided_dilated_padded]",),
        "a kernel would read one element beyond the array",
    ),
    Fault(
        "the scale of split operands is lost", "dropped factor", "plan/operands.py",
        "value = scaled(product(held.get(f, f) for f in large), [f for f in factors if f not in large])",
        "value = product(held.get(f, f) for f in large)",
        (EDGES + "test_programs_at_their_edges[a scale beside two operands]",),
        "a number beside two tensors belongs to the product too",
    ),
    Fault(
        "a scatter forgets its shift", "dropped factor", "plan/stride.py",
        "value = subtract(multiply(place.right, quotient), rest)", "value = multiply(place.right, quotient)",
        ("tests/test_compiled.py::test_fixed_programs_and_their_adjoints[conv1d_strided_dilated_padded]",),
        "gradients of strided windows would fall on the first element of each",
    ),
    Fault(
        "a transposed copy is read the old way", "swapped index", "plan/transposed.py",
        "places = [*(e for k, e in enumerate(node.indices) if k != axis), along]", "places = list(node.indices)",
        (PASSES + "test_programs_after_each_pass[turned]",),
        "rows for columns",
    ),
    Fault(
        "a guarded statement is taken to write all", "missing guard", "plan/first_writes.py",
        "if statement.guard is not None or names is None or any(block.index not in names for block in blocks):",
        "if names is None or any(block.index not in names for block in blocks):",
        (EDGES + "test_programs_at_their_edges[elements that a guard leaves out]",),
        "what the guard leaves out would be whatever lay in memory",
    ),
    Fault(
        "a sum is read before all threads have added to it", "race", "plan/nest.py",
        "if private & read:\n            return None", "if False:\n            return None",
        (EDGES + "test_statements_that_must_wait_for_all_threads[a sum over all]",),
        "each thread would go on with its own part of the sum",
    ),
    Fault(
        "threads write what others read", "race", "plan/nest.py",
        "if any(not seen[name] for name in written - private):\n            return None",
        "if False:\n            return None",
        (EDGES + "test_statements_that_must_wait_for_all_threads[another thread's rows]",),
        "an index is parallel only if it stands on one axis of every access",
    ),
    Fault(
        "a statement overtakes the one that it reads", "race", "plan/nest.py",
        "return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)",
        "return bool(self.writes & (other.reads | other.writes))",
        (EDGES + "test_programs_at_their_edges[a statement that must not overtake]",),
        "groups change the order of statements that do not depend on each other, and of no others",
    ),
    Fault(
        "a thread reads a sum of the step before from its own copy", "race", "plan/nest.py",
        "if any(access.tensor == statement.target.tensor for access in level.before):\n            return False",
        "if False:\n            return False",
        ("tests/test_wide_steps.py::test_values_and_gradients[2-the sum of the step before]",),
        "wrong values at default settings: a fault of this library's own, found by a stranger's generator",
    ),
    Fault(
        "a product of narrow factors is narrow", "wrong type", "plan/work.py",
        "if tensor not in self.kinds:\n            return False", "if True:\n            return False",
        ("tests/test_mixed_types.py::test_no_part_is_narrower_than_the_whole[whole factors]",),
        "whole numbers would wrap around in a product that the text computes in floating point",
    ),
    Fault(
        "a buffer of one slice holds a diagonal", "value reused", "plan/rolling_buffers.py",
        " or fold.block.index in names:", ":",
        ("tests/test_compiled.py::test_programs_that_once_went_wrong[diagonal_in_steps]",),
        "what earlier steps wrote beside it would still be there",
    ),
    Fault(
        "a stride forgets how far its index goes", "off by one", "plan/stride.py",
        "if draft.sizes.index[index] != draft.sizes.shapes[statement.target.tensor][own]:", "if False:",
        ("tests/test_compiled.py::test_programs_that_once_went_wrong[stride_of_a_short_index]",),
        "a target may be longer than the index that runs over it",
    ),
    Fault(
        "a shared product is narrower than the sum that takes it", "wrong type", "plan/contraction_order.py",
        "or self.draft.is_narrower(step.value, statement.target.tensor):", "or False:",
        ("tests/test_mixed_types.py::test_no_part_is_narrower_than_the_whole[a product that another sum has]",),
        "whole numbers would wrap around in a floating-point sum",
    ),
    Fault(
        "a product under an older guard is reused", "value reused", "plan/contraction_order.py",
        "self.reuse(statement, leaves, target | guard, frozenset(map(self.key, atoms)))",
        "self.reuse(statement, leaves, target | guard, {k for s in self.steps for k in s.guard})",
        (PASSES + "test_a_product_under_a_guard_that_has_changed_is_another",),
        "the same condition at another moment is another one",
    ),
    Fault(
        "a buffer of few slices is always inside", "missing guard", "plan/rolling_buffers.py",
        "found |= {(name, None) for name in ir.tensors_read(statement)}", "pass",
        ("tests/test_compiled.py::test_programs_that_once_went_wrong[buffer_under_inside]",),
        "a place modulo the slices is never out of bounds",
    ),
    Fault(
        "slices that are used in turn never meet", "race", "plan/merge.py",
        "return (first - second) % turn != 0 if turn else first != second", "return first != second",
        ("tests/test_wide_steps.py::test_places_that_never_meet",),
        "a full turn comes back to the same slice",
    ),
    Fault(
        "a buffer is read before its step has made it", "skipped check", "plan/rolling_buffers.py",
        "    if not _newest_behind(work, fold, writer):",
        "    if False:",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[a rolling buffer that is read too early]",),
        "it holds the values of an older step",
    ),
    Fault(
        "an index longer than an axis stays bare", "missing guard", "plan/longer_indices.py",
        'ir.Binary("+", place, ZERO) if longer else place',
        'place',
        ("tests/test_once_wrong.py::test_passes_keep_an_index_from_beyond_an_axis",),
        "passes would drop the guard that keeps it inside",
    ),
    Fault(
        "positions count in the order of a copy", "swapped index", "plan/work.py",
        "ir.candidates(old) == ir.candidates(new)",
        "True",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[positions in a copy]",),
        "the position would be that of another element",
    ),
    Fault(
        "sums of one step that read each other are merged", "race", "plan/merge.py",
        "if not all(never_meet(first.target, a, blocks) for a in own):",
        "if False:",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[sums that read what their neighbours add]",),
        "the second reads what the first has added",
    ),
    Fault(
        "a quotient in a branch bounds all points", "missing guard", "plan/stride.py",
        "or access not in always or",
        "or",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[a quotient in a branch]",),
        "points whose branch does not read it would be lost",
    ),
)  # fmt: skip
