"""Picking out of a block the values above a bar, side by side: one instruction where the processor has one for it.

A loop that asks of each value whether it is above the bar is mostly wrong in guessing the answer, and every wrong guess
costs as much as a look at the whole block.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from vicinal.compiled import compiled
from vicinal.search.dots import BLOCK, INSTRUCTED

__all__ = ["pick", "plain"]

_LANES = 16  # numbers of 32 bits in a register


@compiled()
def plain(values, bar, into, offset, which):
    """As ``pick``, by a loop."""
    n, flat = 0, into.ravel()
    for j in range(BLOCK):
        flat[offset + n], which[n] = values[j], j
        n += values[j] > bar
    return n


@intrinsic
def _instructed(context, values, bar, into, offset, which):
    signature = types.int64(values, bar, into, offset, which)

    def generate(context, builder, signature, args):
        single, word, size = ir.FloatType(), ir.IntType(32), ir.IntType(64)
        singles, words = ir.VectorType(single, _LANES), ir.VectorType(word, _LANES)
        flags = ir.VectorType(ir.IntType(1), _LANES)
        seen, out, names = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2, 4))

        def compress(kind, name, numbers, mask):
            function = (
                ir.Function(builder.module, ir.FunctionType(kind, [kind, kind, flags]), name)
                if (name not in builder.module.globals)
                else builder.module.globals[name]
            )
            return builder.call(function, [numbers, ir.Constant(kind, ir.Undefined), mask])

        def everywhere(value):
            nothing = ir.Constant(singles, ir.Undefined)
            first = builder.insert_element(nothing, value, ir.Constant(word, 0))
            return builder.shuffle_vector(first, nothing, ir.Constant(words, [0] * _LANES))

        count, least = ir.Constant(size, 0), everywhere(args[1])
        for start in range(0, BLOCK, _LANES):
            place = builder.bitcast(builder.gep(seen, [ir.Constant(size, start)]), singles.as_pointer())
            numbers = builder.load(place, align=1)
            above = builder.fcmp_ordered(">", numbers, least)
            lanes = ir.Constant(words, list(range(start, start + _LANES)))
            for kind, name, part, base, at in (
                (singles, "llvm.x86.avx512.mask.compress.v16f32", numbers, out, builder.add(args[3], count)),
                (words, "llvm.x86.avx512.mask.compress.v16i32", lanes, names, count),
            ):
                to = builder.bitcast(builder.gep(base, [at]), kind.as_pointer())
                builder.store(compress(kind, name, part, above), to, align=1)
            bits = builder.ctpop(builder.bitcast(above, ir.IntType(_LANES)))
            count = builder.add(count, builder.zext(bits, size))
        return count

    return signature, generate


@compiled()
def _fast(values, bar, into, offset, which):
    return _instructed(values, bar, into, offset, which)


pick = _fast if INSTRUCTED else plain
"""``pick(values, bar, into, offset, which)``: how many of a block are above a bar; they, and their places in the block.

Args:
    values: float32 (BLOCK,).
    bar: float32.
    into: float32, contiguous; the values above the bar are put at ``offset`` and what follows. Up to BLOCK numbers are
        written there, those beyond what is returned without meaning.
    offset: counted through all of ``into``.
    which: int32 (2 BLOCK,), their places in the same way.
"""
