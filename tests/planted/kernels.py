"""Faults in generated kernels."""

from __future__ import annotations

from .fault import Fault

SHARED = "tests/test_shared_tiles.py::"
EDGES = "tests/test_edges_of_plans.py::"
WINNERS = "tests/test_winners.py::"
PASSES = "tests/test_passes.py::"
FOUND = "tests/test_compiled.py::test_programs_that_once_went_wrong"

VECTORS = "tests/test_vector_loops.py::"

FAULTS = (
    Fault(
        "steps of a sum that are left over are not taken", "wrong bound", "kernel/tile.py",
        "return repeated(builder, left, values, lambda step, old: body(builder.add(done, step), old))",
        "return values",
        (SHARED + "test_every_number_of_steps_and_columns",),
        "sums of 5 steps would have 4",
    ),
    Fault(
        "elements that fill no vector are left out", "wrong bound", "kernel/llvm.py",
        "if _may_be_more(0, done, stop, unknown=True):",
        "if False:",
        (VECTORS + "test_as_the_interpreter",),
        "a row of 17 would end with its 16th element",
    ),
    Fault(
        "one tensor at two places of a loop is not looked at", "race", "kernel/lanes.py",
        "        for accesses in self.places.values():\n            _check_apart(accesses)\n",
        "",
        (VECTORS + "test_vectors_that_would_meet",),
        "a vector would read what the step before has not written yet",
    ),
    Fault(
        "vectors of a sum begin with what is there", "dropped factor", "kernel/vector_loops.py",
        "return self.splat(llvm.Constant(self.kind(self.loop.type), -0.0))",
        "return self.splat(llvm.Constant(self.kind(self.loop.type), 1.0))",
        (VECTORS + "test_as_the_interpreter",),
        "each lane of a sum would begin with 1",
    ),
    Fault(
        "what a branch skips is computed before a loop", "missing guard", "kernel/lanes.py",
        "            if not sure and not isinstance(node, ir.Number | ir.Variable):\n                raise _Unfit\n",
        "",
        (VECTORS + "test_what_only_a_branch_may_read",),
        "a place beyond a tensor would be read",
    ),
    Fault(
        "pieces of a sum that all begin with its first step", "wrong index", "lower/panels.py",
        "if found.bounds or found.masks or (ahead and self.tiling.chunk is not None):",
        "if found.bounds or found.masks:",
        ("tests/test_far_tensors.py::test_values_and_gradients[Y[b,o,i] += X[b,c,i] * W[o,c]]",),
        "panels that were packed ahead hold all steps, of which a tile takes a few",
    ),
    Fault(
        "the rest of a block of panels that is not packed", "wrong bound", "lower/panels.py",
        "return [(panels, low, split), (1, split, high)]",
        "return [(panels, low, split)]",
        ("tests/test_far_tensors.py::test_values_and_gradients[Y[b,i,j,o] += X[b,i+u,j+v,c] * W[u,v,c,o]]",),
        "tiles would read panels that nothing has filled",
    ),
    Fault(
        "panels of rows that are packed for one picture", "wrong index", "lower/tiling.py",
        "self.inner_loops = [i for i in self.outer_loops if stays and not of_a.get(i)]",
        "self.inner_loops = [i for i in self.outer_loops if stays]",
        ("tests/test_far_tensors.py::test_values_and_gradients[Y[b,g,o,i] += X[b,g,c,i+u] * W[g,o,c,u]]",),
        "the weights of a group are other ones",
    ),
    Fault(
        "rows that are laid one short", "wrong index", "kernel/laid.py",
        "here = code.further(target, code.at(start, step, lanes))",
        "here = code.further(target, code.at(start, step, NUMBER(self.lanes - 1)))",
        ("tests/test_laid.py::test_pieces_of_rows_stand_one_below_the_other[float32-4-8-False]",),
        "each step of a panel would write over the one before",
    ),
    Fault(
        "steps that are left over belong to one row", "swapped index", "lower/plain.py",
        "self.points(statement, [*again, along], [statement.value], False)",
        "self.points(statement, [along], [statement.value], False)",
        ("tests/test_thin_products.py::test_values_and_gradients[float64-Y[i,j] += A[i,k] * B[k,j]]",),
        "of a few rows, the last steps of the sum would all go to one",
    ),
    Fault(
        "registers hold more than there is", "out of bounds", "lower/short_blocks.py",
        "if last < min(SMALL, layout.elements(name)) and", "if last < SMALL and",
        ("tests/test_short_blocks.py::test_registers_hold_no_more_than_there_is[a place beyond]",),
        "a block would read and write beyond a tensor",
    ),
    Fault(
        "what stays in registers is not written back", "dropped factor", "lower/kernel.py",
        "                    scope.add(one.stored(self.layout.tensor(one.tensor)))", "                    pass",
        ("tests/test_register_blocks.py::test_all_lengths[downwards-float64]",),
        "the last step of a recurrence would be lost",
    ),
    Fault(
        "what stays in registers begins with anything", "dropped factor", "lower/kernel.py",
        "                    scope.add(one.loaded(self.layout.tensor(one.tensor)))", "                    pass",
        ("tests/test_register_blocks.py::test_all_lengths[from a start-float64]",),
        "a recurrence would forget what it starts from",
    ),
    Fault(
        "candidates that follow each other are for the same element", "skipped check", "lower/winner.py",
        "if in_order and same and order", "if in_order and order",
        ("tests/test_winners.py::test_places_that_an_index_chooses[argmax=-g[k],n]",),
        "the best of eight segments would win in the first one's: the gradient of segment_max was wrong",
    ),
    Fault(
        "a winner among none", "missing guard", "lower/winner.py",
        '[compare("<", place, word(NOWHERE))]', "[]",
        ("tests/test_winners.py::test_a_row_without_a_candidate_has_no_winner",),
        "a row without a candidate has the position -1",
    ),
    Fault(
        "the last rows of tiles move back too far", "off by one", "lower/contraction.py",
        "least(ROW, last - self.tiling.rows)", "least(ROW, last - self.tiling.rows - 1)",
        (FOUND + "[guard_on_everything]",),
        "the last row of a product would be what lay in memory",
    ),
    Fault(
        "the last vector of a tile ends one column early", "off by one", "kernel/ir.py",
        "min(place, self.columns - self.lanes)", "min(place, self.columns - self.lanes - 1)",
        ("tests/test_edges_of_plans.py::test_vectors_of_a_tile_overlap_where_the_columns_are_no_multiple",),
        "the last column of a product would be what lay in memory",
    ),
    Fault(
        "the last block of a turned copy begins too early", "off by one", "kernel/turned.py",
        "last = builder.sub(count, side)", "last = builder.sub(count, NUMBER(self.side + 1))",
        ("tests/test_turned.py::test_a_turned_copy_is_a_transpose",),
        "the last step of a panel would be what lay in memory",
    ),
    Fault(
        "points behind the last chunk of a recurrence are left out", "off by one", "lower/kernel.py",
        "scope.strips[index] = low + most(high - low, ZERO) // points * points, high",
        "scope.strips[index] = low + most(high - low, ZERO) // points * points + points, high",
        ("tests/test_register_blocks.py::test_all_lengths",),
        "the last points of a strip would have what lay in memory",
    ),
    Fault(
        "steps where a condition does not hold are taken as if it did", "missing guard", "lower/kernel.py",
        "parts.append((past, size, chunks.statements))", "parts.append((past, size, inner.statements))",
        ("tests/test_register_blocks.py::test_all_lengths",),
        "the first step down would read one before it",
    ),
    Fault(
        "statements of one loop leave memory to each other", "race", "lower/kernel.py",
        "self.alive.passes(item.statements, self.alive.moment)",
        "[self.alive.passes([s], self.alive.moment) for s in item.statements]",
        ("tests/test_register_blocks.py::test_gradients",),
        "a strip of one tensor would be written over by another",
    ),
    Fault(
        "the first step of a shared loop is taken like the others", "missing guard", "lower/together.py",
        "decide(_where(first, False, chosen), others)", "decide(_where(first, True, chosen), others)",
        ("tests/test_together.py::test_what_a_step_decides_is_decided_before_its_loop",),
        "it would read one before it",
    ),
    Fault(
        "a sum of components forgets what was there", "dropped factor", "lower/together.py",
        "old = None if store else loaded(statement.target, scope.write)", "old = None",
        ("tests/test_together.py::test_a_strip_of_points_with_components",),
        "the second of two sums would be all",
    ),
    Fault(
        "the last of a few rounds is left out", "off by one", "kernel/llvm.py",
        "for number in node.rounds or ():", "for number in (node.rounds or ())[:-1]:",
        ("tests/test_together.py::test_a_strip_of_points_with_components",),
        "a component would be what lay in memory",
    ),
    Fault(
        "points of a loop that meet each other share it", "race", "lower/together.py",
        "return all(any(a == b == ir.Index(i) for a, b in pairs) for i in order)", "return True",
        ("tests/test_together.py::test_a_step",),
        "a neighbour would be read before it is written",
    ),
    Fault(
        "lanes of a turned copy that change places", "swapped index", "kernel/turned.py",
        "low = [p if not p & apart else side + p - apart for p in range(side)]",
        "low = [p if not p & apart else side + p for p in range(side)]",
        ("tests/test_turned.py::test_a_turned_copy_is_a_transpose",),
        "a panel would hold elements of other rows",
    ),
    Fault(
        "a tile at an edge adds twice", "skipped check", "lower/tilecall.py",
        "reasons = [] if keep is FALSE else self.edges()", "reasons = []",
        (EDGES + "test_programs_at_their_edges[a contraction that adds to another]",),
        "the last tile overlaps the one before it",
    ),
    Fault(
        "strips of a whole number of tiles that begin anywhere", "skipped check", "lower/tilecall.py",
        "size % step == 0 and self.layout.least[name] % step == 0", "size % step == 0",
        (SHARED + "test_strips_with_and_without_a_rest[72-12]",),
        "the last tile of a strip would add twice where it overlaps the one before it",
    ),
    Fault(
        "a rest of a strip that nobody sees", "skipped check", "lower/tilecall.py",
        "return size is not None and size % step == 0 and", "return size is not None and",
        (SHARED + "test_strips_with_and_without_a_rest[57-8]",),
        "the last tile of a strip would add twice where it overlaps the one before it",
    ),
    Fault(
        "steps left over below a tile's common ones", "missing guard", "lower/tilecall.py",
        "if Number(1) in steps else []", "if False else []",
        (SHARED + "test_sums_under_guards[from the row on-33]",),
        "rows whose sums begin before those of others would lose their first terms",
    ),
    Fault(
        "steps left over above a tile's common ones", "missing guard", "lower/tilecall.py",
        "if any(step != Number(1) for step in steps) else []", "if False else []",
        (SHARED + "test_sums_under_guards[up to the row-33]",),
        "rows whose sums end after those of others would lose their last terms",
    ),
    Fault(
        "tiles of other strides are the same function", "stale key", "kernel/common.py",
        "self.words.append(str(value.value))", 'self.words.append("")',
        (SHARED + "test_products_of_one_process_that_differ_in_one_number[float64]",),
        "the second product would step through memory as the first does",
    ),
    Fault(
        "panels without their mask", "missing guard", "lower/panels.py",
        "if tiling.found.masks and side is tiling.b:", "if False:",
        (FOUND + "[guard_on_column_and_sum]",),
        "what the guard leaves out would be added",
    ),
    Fault(
        "the last strip ends at a multiple", "off by one", "lower/kernel.py",
        'Choice(compare("<", strip, strips - 1), end, size)', "least(end, size)",
        ("tests/test_compiled.py::test_large_enough_for_threads[1]",),
        "a size that is no multiple of the grain loses its rest",
    ),
    Fault(
        "the first thread forgets what was there", "dropped factor", "lower/kernel.py",
        "if name in self.continued:", "if False:",
        (EDGES + "test_programs_at_their_edges[a sum that two kernels add to]",),
        "a sum that an earlier kernel began goes on",
    ),
    Fault(
        "the last of equal candidates wins", "wrong rule", "lower/winner.py",
        'sign = ">" if statement.operator == "argmax="', 'sign = ">=" if statement.operator == "argmax="',
        (EDGES + "test_programs_at_their_edges[ties]",),
        "ties are rare in random numbers, and common in images",
    ),
    Fault(
        "the last of eight equal candidates wins", "wrong rule", "lower/winner.py",
        "for k in reversed(range(count - 1)):", "for k in range(count - 1):",
        (WINNERS + "test_candidates_are_met_several_at_a_time_along_the_target[argmax=-a[n] {} X[k,n]-int64]",),
        "ties within the candidates of one round",
    ),
    Fault(
        "a length at the end of words wraps around", "overflow", "lower/roles.py",
        "minimum(maximum(access, Number(-LARGE)), Number(LARGE))", "access",
        ("tests/test_ragged.py::test_tiles_end_where_values_say[rows-at the ends-float64]",),
        "a length far below 0 would be one far above",
    ),
    Fault(
        "a wrong digit in exp", "wrong constant", "kernel/functions/elementary.py",
        "0.0013888888932798668", "0.0013888888832798668",
        ("tests/test_mathematics.py::test_error[exp-f8]",),
        "an error of 1e-13 that only a count of the last places shows",
    ),
    Fault(
        "the rest of a jammed sum starts one late", "off by one", "lower/plain.py",
        "self.layout.index(summed), split, high)", "self.layout.index(summed), split + 1, high)",
        (PASSES + "test_programs_after_each_pass[jammed]",),
        "sizes that are multiples of eight hide it",
    ),
    Fault(
        "the first value of a difference is not negative", "wrong sign", "lower/plain.py",
        'if operator == "-=":  #', "if False:  #",
        (EDGES + "test_programs_at_their_edges[the first value of a difference]",),
        "the first term is stored, the others are subtracted",
    ),
    Fault(
        "a guard bounds a loop one short", "off by one", "lower/scope.py",
        "highs.append(self.write.integer(add(rest, Number(1))))", "highs.append(self.write.integer(rest))",
        (FOUND + "[fractions_in_guards]",),
        "j <= i is not j < i",
    ),
    Fault(
        "inside of a kernel reaches one too far", "off by one", "lower/expression.py",
        'compare("<", at, extent)', 'compare("<=", at, extent)',
        (EDGES + "test_inside_that_only_a_point_can_tell",),
        "where a bound of a loop cannot say it, a comparison at each point must",
    ),
    Fault(
        "rows that do not follow each other are one", "skipped check", "lower/flatten.py",
        "if steps[outer] != steps[inner] * sizes[inner]:\n            return False",
        "if False:\n            return False",
        (PASSES + "test_loops_that_run_on_in_memory[a value beside]",),
        "two loops are one only if memory runs on",
    ),
    Fault(
        "vectors run backwards where a guard leaves no points", "off by one", "lower/scope.py",
        "most(high - low, ZERO) // lanes",
        "(high - low) // lanes",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[an empty range in a strip of vectors]",),
        "points outside the guard would be computed, or outside the tensor",
    ),
    Fault(
        "a mask of other indices", "missing guard", "lower/roles.py",
        "ir.index_names(atom) <= {found.column, *found.summed}",
        "ir.index_names(atom)",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[a mask with a third index, in panels of each]",),
        "panels would be packed for another value of the index",
    ),
    Fault(
        "products of whole numbers are left to numpy", "skipped check", "run/products.py",
        "== {bound.dtype} and bound",
        "and bound",
        ("tests/test_once_wrong.py::test_a_large_product_of_whole_numbers_is_not_left_to_numpy",),
        "int8 would wrap around",
    ),
    Fault(
        "a narrow type starts from the least of a wide one", "wrong rule", "lower/reduction.py",
        "identity(statement.operator, scope.layout.stored(target.tensor))",
        "identity(statement.operator, dtype)",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[the greatest of no small numbers]",),
        "the greatest of nothing would be 0 in int8",
    ),
    Fault(
        "plain numbers are rounded before they meet a type", "wrong rule", "lower/layout.py",
        'return DOUBLE if kind.weak and kind.dtype.kind == "f" else kind.dtype',
        'return np.dtype(np.float32) if kind.weak and kind.dtype.kind == "f" else kind.dtype',
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[a plain number that jumps]",),
        "floor(0.29 * 100) would be 29",
    ),
)  # fmt: skip
