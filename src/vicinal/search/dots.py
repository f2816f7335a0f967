"""Products of vectors of small whole numbers, of 8 bits: shadows of points with those of queries.

Processors with AVX-512 VNNI multiply 64 such numbers and add them up by fours in one instruction. No compiler finds it
by itself, so ``dots`` is written in LLVM's own terms for them; elsewhere it is a plain loop. Both are exact.

The instruction takes the numbers of a query unsigned, so a query lies in memory with 128 added to each of them, and the
sums begin at -128 times the sum of the point's numbers.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from vicinal.checks import Bytes
from vicinal.compiled import compiled
from vicinal.search.kernels import FAST

__all__ = ["BLOCK", "COLUMNS", "GROUP", "INSTRUCTED", "STEP", "TILE", "dots", "dots_of_block", "laid", "plain"]

GROUP = 4  # queries that are multiplied with a tile together
TILE = 256  # points in a tile
BLOCK = 32  # points in a block, for those who have few that lie together
STEP = 4  # columns that are added up together: in a tile, those of a point lie side by side for the instruction
COLUMNS = 1024  # at most: so every sum of products is below 2^24, and exact in float32 too
# whether Numba compiles for such a processor: by what it knows its compiled loops by, too
INSTRUCTED = "+avx512vnni" in cpu_target.target_context.codegen().magic_tuple()[2].split(",")

_LANES = 16  # whole numbers of 32 bits in a register


def laid(numbers: Bytes, *, instructed: bool = INSTRUCTED) -> Bytes:
    """Whole numbers (..., columns, points) as tiles (..., columns / STEP, ., .): as they are read."""
    steps = numbers.reshape(*numbers.shape[:-2], -1, STEP, numbers.shape[-1])
    return np.ascontiguousarray(steps.swapaxes(-1, -2) if instructed else steps)


@compiled(fastmath=FAST)
def plain(found, tiles, number, queries, row, begins):
    """As ``dots``, by a loop over tiles that are laid for it."""
    tile, width = tiles[number], tiles.shape[3]
    asked, sums = np.empty((GROUP, queries.shape[1]), np.float32), np.zeros((GROUP, width), np.float32)
    for g in range(GROUP):
        for t in range(queries.shape[1]):
            asked[g, t] = np.float32(queries[row + g, t]) - np.float32(128)
    a, b, c, d = sums[0], sums[1], sums[2], sums[3]
    for step in range(tile.shape[0]):
        x0, x1, x2, x3 = tile[step, 0], tile[step, 1], tile[step, 2], tile[step, 3]
        t = STEP * step
        a0, a1, a2, a3 = asked[0, t], asked[0, t + 1], asked[0, t + 2], asked[0, t + 3]
        b0, b1, b2, b3 = asked[1, t], asked[1, t + 1], asked[1, t + 2], asked[1, t + 3]
        c0, c1, c2, c3 = asked[2, t], asked[2, t + 1], asked[2, t + 2], asked[2, t + 3]
        d0, d1, d2, d3 = asked[3, t], asked[3, t + 1], asked[3, t + 2], asked[3, t + 3]
        for j in range(width):  # all is read before anything is written: so the compiler reads each x once
            u0, u1, u2, u3 = np.float32(x0[j]), np.float32(x1[j]), np.float32(x2[j]), np.float32(x3[j])
            to_a = a[j] + (a0 * u0 + a1 * u1 + a2 * u2 + a3 * u3)
            to_b = b[j] + (b0 * u0 + b1 * u1 + b2 * u2 + b3 * u3)
            to_c = c[j] + (c0 * u0 + c1 * u1 + c2 * u2 + c3 * u3)
            to_d = d[j] + (d0 * u0 + d1 * u1 + d2 * u2 + d3 * u3)
            a[j] = to_a
            b[j] = to_b
            c[j] = to_c
            d[j] = to_d
    for g in range(GROUP):
        for j in range(width):
            found[g, j] = np.int32(sums[g, j])


def _generator(width, registers):
    """Code for ``dots`` of so many points, all arrays contiguous.

    For as many points as fill some registers: sums for four queries stay in registers, from ``begins`` on, until all
    columns are multiplied; then they go out.
    """
    word, size = ir.IntType(32), ir.IntType(64)
    register = ir.VectorType(word, _LANES)
    whole = width // _LANES  # registers that a step takes

    def generate(context, builder, signature, args):
        arrays = [context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1, 3, 5)]
        number, row = args[2], args[4]
        steps = builder.extract_value(arrays[1].shape, 1)
        out, points, begins = (builder.bitcast(arrays[i].data, register.as_pointer()) for i in (0, 1, 3))
        asked = builder.bitcast(arrays[2].data, word.as_pointer())
        points = builder.gep(points, [builder.mul(number, builder.mul(steps, ir.Constant(size, whole)))])
        begins = builder.gep(begins, [builder.mul(number, ir.Constant(size, whole))])
        asked = builder.gep(asked, [builder.mul(row, steps)])
        product = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(register, [register] * 3), "llvm.x86.avx512.vpdpbusd.512"
        )
        nothing, zeros = ir.Constant(register, ir.Undefined), ir.Constant(ir.VectorType(word, _LANES), [0] * _LANES)

        def at(number):
            return ir.Constant(size, number)

        def load(base, place):
            return builder.load(builder.gep(base, [place]), align=1)

        sums = [[cgutils.alloca_once(builder, register) for _ in range(registers)] for _ in range(GROUP)]
        for part in range(0, whole, registers):
            for column in range(registers):
                start = load(begins, at(part + column))
                for g in range(GROUP):
                    builder.store(start, sums[g][column])
            with cgutils.for_range(builder, steps) as loop:
                step = builder.mul(loop.index, at(whole))
                here = [load(points, builder.add(step, at(part + column))) for column in range(registers)]
                for g in range(GROUP):
                    numbers = load(asked, builder.add(builder.mul(steps, at(g)), loop.index))
                    first = builder.insert_element(nothing, numbers, ir.Constant(word, 0))
                    everywhere = builder.shuffle_vector(first, nothing, zeros)
                    for column in range(registers):
                        total = builder.call(product, [builder.load(sums[g][column]), everywhere, here[column]])
                        builder.store(total, sums[g][column])
            for g in range(GROUP):
                for column in range(registers):
                    place = builder.gep(out, [at(g * whole + part + column)])
                    builder.store(builder.load(sums[g][column]), place, align=1)
        return context.get_dummy_value()

    return generate


@intrinsic
def _of_tile(context, found, tiles, number, queries, row, begins):
    return types.void(found, tiles, types.int64, queries, types.int64, begins), _generator(TILE, 4)


@intrinsic
def _of_block(context, found, blocks, number, queries, row, begins):
    return types.void(found, blocks, types.int64, queries, types.int64, begins), _generator(BLOCK, 2)


@compiled()
def _fast(found, tiles, number, queries, row, begins):
    _of_tile(found, tiles, number, queries, row, begins)


@compiled()
def _fast_of_block(found, blocks, number, queries, row, begins):
    _of_block(found, blocks, number, queries, row, begins)


dots = _fast if INSTRUCTED else plain
"""``dots(found, tiles, number, queries, row, begins)``: the products of a tile's points with four queries.

Args:
    found: int32 (GROUP, TILE), filled.
    tiles: int8, see ``laid``.
    number: which of them.
    queries: uint8 (m, columns), 128 more than the numbers of each.
    row: the first of the four.
    begins: int32 (tiles, TILE), -128 times the sum of the numbers of each point.
"""

dots_of_block = _fast_of_block if INSTRUCTED else plain
"""The same for a block of BLOCK points."""
