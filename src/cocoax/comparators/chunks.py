"""Passes over rounds in batches, so that what is in memory at once stays small however many rounds there are."""

import math

import jax
import jax.numpy as jnp

from ..core import traces, tree

_ENTRIES = 2**23  # of the largest array that a batch may need


def batch_size(problem, point, rounds, *, lanes: int = 1) -> int:
    """Rounds in a batch, by the largest array that the loss and constraints of one round make; in compiled code."""
    one = jax.tree.map(lambda leaf: leaf[0], rounds)
    program = jax.make_jaxpr(lambda round: problem.values(point, round))(one)
    largest = _largest(program, [True] * len(program.in_avals))
    if has_own_gradients(problem):
        largest = max(largest, tree.size(point) * (1 + problem.constraints))
    return max(_ENTRIES // max(largest * lanes, 1), 1)


def has_own_gradients(problem) -> bool:
    """Whether gradients are taken round by round: users' own, and those of decisions that stay."""
    return not (problem.loss_grad is None and problem.constraint_grad is None and not problem.has_movement)


def map_rounds(function, batch, *rows):
    """`function` of every batch of rows (it returns arrays with as many rows), one after the other."""
    count = jax.tree.leaves(rows)[0].shape[0]
    if batch >= count:
        return function(*rows)
    full = count // batch * batch
    answers = jax.lax.map(lambda part: function(*part), _split(rows, full, batch))
    answers = jax.tree.map(lambda leaf: leaf.reshape(full, *leaf.shape[2:]), answers)
    if full == count:
        return answers
    rest = function(*jax.tree.map(lambda leaf: leaf[full:], rows))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), answers, rest)


def sum_rounds(function, batch, *rows):
    """The sum of `function` of every batch of rows."""
    count = jax.tree.leaves(rows)[0].shape[0]
    if batch >= count:
        return function(*rows)
    full = count // batch * batch
    if full < count:
        first = function(*jax.tree.map(lambda leaf: leaf[full:], rows))
    else:
        likes = jax.eval_shape(function, *jax.tree.map(lambda leaf: leaf[:batch], rows))
        first = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), likes)
    return jax.lax.scan(lambda total, part: (tree.add(total, function(*part)), None), first, _split(rows, full, batch))[
        0
    ]


def _split(rows, full, batch):
    return jax.tree.map(lambda leaf: leaf[:full].reshape(full // batch, batch, *leaf.shape[1:]), rows)


def _largest(program, marks) -> int:
    """Entries of the largest array that depends on the inputs with a mark."""
    sizes = [1]

    def rule(equation, marks):
        if any(marks):
            sizes.extend(math.prod(getattr(var.aval, "shape", ())) for var in equation.outvars)
            for inner in traces.programs(equation):
                count = len(inner.in_avals)
                sizes.append(_largest(inner, marks if count == len(marks) else [True] * count))
        return [any(marks)] * len(equation.outvars)

    traces.interpret(program, marks, rule, lambda _: False)
    return max(sizes)
