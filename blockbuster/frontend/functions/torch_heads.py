"""torch's attention of several heads: the computation behind nn.MultiheadAttention.

Arrays are given as (tokens, batch, features), and without the batch as (tokens, features). Here
the batch comes first: the module transposes arrays of which it comes first to what torch takes, and
two transposes are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from blockbuster.frontend.functions.joins import chunk, concat, constant
from blockbuster.frontend.functions.normalizations import softmax
from blockbuster.frontend.functions.pads import pad_last as pad
from blockbuster.frontend.functions.pointwise import where
from blockbuster.frontend.functions.products import matmul
from blockbuster.frontend.functions.reductions import mean
from blockbuster.frontend.functions.row import Array, torch_rows
from blockbuster.frontend.functions.shapes import (
    broadcast_to,
    flatten,
    is_unit,
    reshape,
    squeeze,
    swapaxes,
    unflatten,
)
from blockbuster.frontend.functions.torch_layers import linear, scaled_dot_product_attention
from blockbuster.frontend.kinds import MASK
from blockbuster.frontend.source import trace_error


class Tokens(NamedTuple):
    """Queries, keys and values, (batch, tokens, features), and the masks of scores.

    ``mask`` is added to the scores of all batches, or of each head of each; ``padding``, (batch,
    keys), to those of each batch.
    """

    query: Array
    key: Array
    value: Array
    mask: Array | None
    padding: Array | None


def multi_head_attention_forward(
    query: Array, key: Array, value: Array, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Array | None, in_proj_bias: Array | None, bias_k: Array | None,
    bias_v: Array | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Array,
    out_proj_bias: Array | None, training: bool = True, key_padding_mask: Array | None = None,
    need_weights: bool = True, attn_mask: Array | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Array | None = None,
    k_proj_weight: Array | None = None, v_proj_weight: Array | None = None,
    static_k: Array | None = None, static_v: Array | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Array, Array | None]:  # fmt: skip
    """Attention of ``num_heads`` heads between layers; the weights, too, if they are needed."""
    if training and dropout_p > 0:
        hint = "Blockbuster compiles inference: call model.eval(), or pass dropout_p=0.0"
        raise trace_error("attention with dropout draws random numbers", hint=hint)
    if static_k is not None or static_v is not None:
        raise trace_error("attention with static_k or static_v", hint="leave them out")
    if is_causal and attn_mask is None:
        raise trace_error("is_causal needs attn_mask", hint="pass the causal mask, too")
    is_causal = is_causal and key_padding_mask is None and not need_weights
    masks = _added(None if is_causal else attn_mask), _added(key_padding_mask)
    whole = Tokens(query, key, value, *masks)
    is_batched = _is_batched(whole, embed_dim_to_check, num_heads)
    whole = _batch_first(whole, is_batched)
    weights = (
        (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight
        else in_proj_weight
    )  # fmt: skip
    whole = _in_heads(whole, weights, in_proj_bias, num_heads)
    if bias_k is not None:
        whole = _with_token(whole, bias_k, bias_v)
    found, scores = _attention(whole, add_zero_attn, is_causal, need_weights)
    found = linear(found, out_proj_weight, out_proj_bias)
    if scores is not None and average_attn_weights:
        scores = mean(scores, 1)
    if not is_batched:
        return squeeze(found, 0), None if scores is None else squeeze(scores, 0)
    return swapaxes(found, 0, 1), scores


def _added(mask: Array | None) -> Array | None:
    """A mask as numbers to be added: -inf where it is true, as torch leaves keys out here."""
    if mask is None or mask.kind != MASK:
        return mask
    return where(mask, -np.inf, 0.0)


def _is_batched(given: Tokens, features: int, heads: int) -> bool:
    """Whether arrays have a batch. Raises TraceError for arrays that torch refuses, too."""
    ranks = [len(x.shape) for x in given[:3]]
    if ranks not in ([2, 2, 2], [3, 3, 3]):
        hint = "each is (tokens, features) or (tokens, batch, features)"
        raise trace_error(f"attention of arrays of {ranks} axes", hint=hint)
    query = given.query
    own = query.trace.dims.extent(query.axes[-1])
    if (own is not None and own != features) or features % heads:
        reason = f"attention of {own or features} features, {heads} heads, made for {features}"
        raise trace_error(reason, hint="the features are those of the layer, a multiple of heads")
    for mask, most, name in ((given.mask, (2, 3), "attn_mask"), (given.padding, (ranks[0] - 1,),
                             "key_padding_mask")):  # fmt: skip
        if mask is not None and len(mask.shape) not in most:
            reason = f"{name} of {len(mask.shape)} axes"
            raise trace_error(reason, hint=f"it has {' or '.join(map(str, most))} axes here")
    _check_mask(given)
    return ranks[0] == 3


def _check_mask(given: Tokens) -> None:
    """Raise TraceError for a mask that would have to be repeated: torch repeats none."""
    pairs = [(given.mask, -2, given.query), (given.mask, -1, given.key),
             (given.padding, -1, given.key)]  # fmt: skip
    for mask, axis, tokens in pairs:
        if mask is not None and is_unit(mask, axis) and not is_unit(tokens, 0):
            reason = "a mask of one row or column beside several tokens"
            raise trace_error(reason, hint="masks are (queries, keys), and (batch, keys)")


def _batch_first(given: Tokens, is_batched: bool) -> Tokens:
    """The arrays with the batch in front; without one, as a batch of one."""
    made = {id(x): swapaxes(x, 0, 1) if is_batched else x[None] for x in given[:3]}
    query, key, value = (made[id(x)] for x in given[:3])  # one array of tokens stays one
    padding = given.padding if given.padding is None or is_batched else given.padding[None]
    return Tokens(query, key, value, given.mask, padding)


def _in_heads(
    given: Tokens, weights: Array | tuple[Array, ...], bias: Array | None, heads: int
) -> Tokens:
    """Layers of queries, keys and values, (batch, tokens, heads, features).

    Of one array of tokens they are one product.
    """
    if not isinstance(weights, tuple) and given.query is given.key and given.key is given.value:
        layers = unflatten(linear(given.query, weights, bias), -1, (3, heads, -1))
        query, key, value = (layers[:, :, at] for at in range(3))
        return given._replace(query=query, key=key, value=value)
    parts = weights if isinstance(weights, tuple) else chunk(weights, 3, 0)
    biases = (None, None, None) if bias is None else chunk(bias, 3, 0)
    each = zip(given[:3], parts, biases, strict=True)
    query, key, value = (unflatten(linear(x, w, b), -1, (heads, -1)) for x, w, b in each)
    return given._replace(query=query, key=key, value=value)


def _with_token(given: Tokens, key: Array, value: Array) -> Tokens:
    """One more key and value, the same for all batches, which no mask leaves out."""
    batch, _, *each = given.key.shape
    keys, values = (
        concat([own, broadcast_to(unflatten(more, -1, each), (batch, 1, *each))], 1)
        for own, more in ((given.key, key), (given.value, value))
    )
    return Tokens(given.query, keys, values, *map(_one_more, given[3:]))


def _one_more(mask: Array | None) -> Array | None:
    return None if mask is None else pad(mask, (0, 1))


def _attention(
    given: Tokens, zero: bool, is_causal: bool, need_weights: bool
) -> tuple[Array, Array | None]:
    """The values that each query attends to, (batch, tokens, features), and the weights."""
    query, key, value = (swapaxes(x, 1, 2) for x in given[:3])
    masks = given.mask, given.padding
    if zero:
        none = (*key.shape[:2], 1, key.shape[3])
        key, value = (concat([x, constant(x, none, 0.0)], 2) for x in (key, value))
        masks = _one_more(given.mask), _one_more(given.padding)
    added = _of_scores(*masks, query.shape[:2])
    if not need_weights:
        found = scaled_dot_product_attention(query, key, value, added, 0.0, is_causal)
        return flatten(swapaxes(found, 1, 2), 2, 3), None
    scores = matmul(query * query.shape[-1] ** -0.5, swapaxes(key, -1, -2))
    scores = softmax(scores if added is None else scores + added)
    found = matmul(scores, value)
    return flatten(swapaxes(found, 1, 2), 2, 3), scores


def _of_scores(mask: Array | None, padding: Array | None, each: Sequence[Any]) -> Array | None:
    """What is added to scores (batch, heads, queries, keys); ``each``: batches and heads."""
    if mask is not None and len(mask.shape) == 3:
        mask = mask if is_unit(mask, 0) else reshape(mask, (*each, *mask.shape[1:]))
    if padding is None:
        return mask
    padding = padding[:, None, None]
    return padding if mask is None else mask + padding


ROWS = torch_rows("torch.nn.functional: layers", multi_head_attention_forward)
