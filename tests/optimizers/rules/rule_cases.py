"""A graph for every registered rewrite in which it has something to do, and one that looks alike.

A new rule needs a line here (``test_every_rule``); what it makes of graphs is tested by subject.
"""

import numpy as np

import opwise.tensor as T
from opwise import OpFromGraph, sparse
from opwise.compile import view_op
from opwise.gradient import grad
from opwise.ifelse import IfElse, ifelse
from opwise.loops import scan
from opwise.nn import conv2d, pool_2d
from opwise.sandbox.rng_mrg import mrg_uniform
from opwise.scalar.op import OPS
from opwise.tensor import CAReduce, inc_subtensor, linalg, raw_random, set_subtensor
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import gemm, gemv
from opwise.tensor.creation import alloc_empty
from opwise.tensor.elemwise import elemwise
from opwise.tensor.linalg import Hint
from opwise.tensor.nnet import (
    conv2d_grad_wrt_inputs,
    crossentropy_softmax_1hot_with_bias_dx,
    softmax_op,
)
from opwise.tensor.nnet.abstract_conv import conv2d_grad_wrt_weights
from opwise.tensor.nnet.blocksparse import sparse_block_gemv, sparse_block_outer
from opwise.tensor.nnet.bn import (
    AbstractBatchNormInference,
    AbstractBatchNormTrain,
    AbstractBatchNormTrainGrad,
)
from opwise.tensor.nnet.ctc import ctc
from opwise.tensor.shape import shape_i_op
from opwise.typed_list import make_list

sigmoid, softplus, softmax, zeros = T.nnet.sigmoid, T.nnet.softplus, T.nnet.softmax, T.zeros_like
second, switch, inv, neg, identity, sqr = map(
    elemwise, "second switch inv neg identity sqr".split()
)
lt, le, gt, ge, eq, neq = map(elemwise, "lt le gt ge eq neq".split())
add, mul, sub, true_div, int_div = map(elemwise, "add mul sub true_div int_div".split())

GENERATOR = raw_random.random_state_type.make_constant(np.random.RandomState(1))
#: indices of blocks: for 2 examples, which 3 of 3 blocks
ROWS = np.array([[0, 1, 2], [2, 2, 0]])

#: kernels whose values are known
KERNELS = np.arange(24.0).reshape(2, 3, 2, 2)


def spread(x):
    """The elements of images with zeros between them."""
    return set_subtensor(T.zeros((2, 3, 8, 8))[:, :, ::2, ::2], x)


def padded(x):
    """Images with zeros around them."""
    around = T.zeros((2, 3, 6, 8))
    return set_subtensor(around[:, :, 1:5, 1:6], x.reshape((2, 3, 4, 5)))


def zero_sided(x):
    """A matrix between two columns of zeros."""
    return set_subtensor(T.zeros((x.shape[0], x.shape[1] + 2))[:, 1:-1], x)


def half_filled(x):
    """Images that begin a row below the top of zeros; nothing tells their length."""
    return set_subtensor(T.zeros((2, 3, 8, 8))[:, :, 1:], x)


#: name of a rule -> (a graph in which it fires, a lookalike, stages and rewrites that run before)
RULES = {
    "scan_remove_unused": (
        lambda v: scan(lambda e, h, s: [h * e, s + h, e], v, [v[0], v[1], None])[0][0],
        lambda v: scan(lambda e, h, s: [h * e, s + h], v, [v[0], v[1]])[0][1],
        "",
    ),
    "scan_push_out_sequences": (
        lambda x: scan(lambda row, h: T.tanh(T.dot(row, x) + h), x, x[0])[0],
        lambda x: scan(lambda row, h: T.tanh(T.dot(h, x) + row), x, x[0])[0],
        "",
    ),
    "scan_push_out_constants": (
        lambda x: grad(T.sum(scan(lambda row, h: h + T.sum(row / x), x, x[0, 0])[0]), x),
        lambda x: grad(T.sum(scan(lambda row, h: h + T.sum(row + x), x, x[0, 0])[0]), x),
        "",
    ),
    "scan_push_out_results": (
        lambda x: scan(lambda row, h: [row * h, T.dot(h, x)], x, [x[0], None])[0][1],
        lambda x: scan(lambda row, h: [T.dot(row * h, x), row * h], x, [x[0], None])[0],
        "",
    ),
    "scan_push_out_sums": (
        lambda x: grad(T.sum(scan(lambda row, h: T.tanh(T.dot(h, x) + row), x, x[0])[0]), x),
        lambda x: scan(lambda row, h: T.dot(h, x), x, x[0])[0],
        "",
    ),
    "scan_collect_together": (
        lambda x: [
            scan(lambda row, h, f=f: [row * h, f(h)], x, [x[0], None])[0][1]
            for f in (T.tanh, T.exp)
        ],
        lambda x: [scan(lambda row, h, f=f: f(row * h), x, x[0])[0] for f in (T.tanh, T.exp)],
        "merge1",
    ),
    "scanOp_save_mem": (
        lambda v: scan(lambda e, h: h * e, v, v[0])[0][-1],
        lambda v: scan(lambda e, h: h * e, v, v[0])[0][1],
        "",
    ),
    "scan_keep_last_sum": (
        lambda v: scan(lambda e, h: h + e * e, v, v[0])[0][-1],
        lambda v: scan(lambda e, h: h + e * e, v, v[0])[0][1],
        "",
    ),
    "scanOp_unroll": (
        lambda v: scan(lambda h: T.tanh(h), outputs_info=v[0], n_steps=3)[0],
        lambda v: scan(lambda h: T.tanh(h), outputs_info=v[0], n_steps=30)[0],
        "",
    ),
    "scan_constants_inside": (
        lambda v: scan(lambda e, h, c: h * e * c, v, v[0], T.constant(2.0) * 3)[0],
        lambda v: scan(lambda e, h, c: h * e * c, v, v[0], v[1])[0],
        "",
    ),
    "scanOp_merge_inouts": (
        lambda v: scan(lambda e, a, b: [a * e, b * e], v, [v[0], v[0]])[0],
        lambda v: scan(lambda e, a, b: [a * e, b + e], v, [v[0], v[0]])[0],
        "",
    ),
    "scanOp_make_inplace": (
        lambda v: scan(lambda e, h: h * e, v, v[0])[0][-1],
        lambda v: scan(lambda e, h: h * e, v, v[0])[0][1],
        "scanOp_save_mem",
    ),
    "local_useless_ifelse": (
        lambda x, y: ifelse(1, x, y),
        lambda x, y: ifelse(x[0, 0], x, y),
        "",
    ),
    "ifelse_remove_unused": (
        lambda x, y: ifelse(x[0, 0], [x, y], [y, x])[0],
        lambda x, y: ifelse(x[0, 0], x, y),
        "",
    ),
    "cond_remove_identical": (
        lambda x, y: sum(ifelse(x[0, 0], [x, x], [y, y])),
        lambda x, y: sum(ifelse(x[0, 0], [x, y], [y, x])),
        "",
    ),
    "cond_merge_ifs_true": (
        lambda x, y: ifelse(x[0, 0], ifelse(x[0, 0], y, x), x),
        lambda x, y: ifelse(x[0, 0], ifelse(y[0, 0], y, x), x),
        "merge",
    ),
    "cond_merge_ifs_false": (
        lambda x, y: ifelse(x[0, 0], x, ifelse(x[0, 0], x, y)),
        lambda x, y: ifelse(x[0, 0], x, ifelse(y[0, 0], x, y)),
        "merge",
    ),
    "cond_make_inplace": (
        lambda x, y: ifelse(x[0, 0], x, y),
        lambda x, y: IfElse(1, as_view=True)(x[0, 0], x, y),
        "",
    ),
    "scan_step_on_device": (
        lambda v: scan(lambda e, h: h + v[T.cast(e, "int64")], v, v[0])[0],
        lambda v: scan(lambda e, h: h + v[: T.cast(e, "int64")].sum(), v, v[0])[0],
        "",
    ),
    "inline_ofg_expansion": (
        lambda x, y: OpFromGraph([x, y], [x * y], inline=True)(y, x),
        lambda x, y: OpFromGraph([x, y], [x * y])(y, x),
        "",
    ),
    "inline_ofg_on_device": (
        lambda x, y: OpFromGraph([x, y], [x * y])(y, x),
        lambda x, y: OpFromGraph([x, y], [x * y], mode="FAST_RUN")(y, x),
        "",
    ),
    "local_conv_of_padded": (
        lambda d, e: [conv2d(padded(d), e), conv2d(padded(d).dimshuffle(1, 0, 2, 3), e)],
        lambda d, e: conv2d(half_filled(d), e),
        "",
    ),
    "local_gradient_of_padded": (
        lambda d, e: conv2d_grad_wrt_inputs(d, e, (2, 3, 7, 8))[:, :, 1:-1, 2:],
        lambda d, e: conv2d_grad_wrt_inputs(d, e, (2, 3, 7, 8))[:, 1:],
        "",
    ),
    "local_part_of_conv": (
        lambda d, e: conv2d(d, e, border_mode=1)[1:, :, ::2, 1:],
        lambda d, e: conv2d(d, e)[:, :, 1:-1],
        "",
    ),
    "local_gradient_of_part_of_conv": (
        lambda d, e: conv2d_grad_wrt_weights(d, spread(e), (2, 3, 2, 2)),
        lambda d, e: conv2d_grad_wrt_weights(d, half_filled(e), (2, 3, 2, 2)),
        "",
    ),
    "local_conv_of_flipped": (
        lambda d, e: conv2d(d, e[:, :, ::-1, ::-1]),
        lambda d, e: conv2d(d, e[:, ::-1, ::-1]),
        "",
    ),
    "local_flipped_gradient": (
        lambda d, e: conv2d_grad_wrt_weights(d, e, (2, 3, 2, 2))[:, :, ::-1, ::-1],
        lambda d, e: conv2d_grad_wrt_weights(d, e, (2, 3, 2, 2))[:, :, ::-1],
        "",
    ),
    "local_conv_of_transposed": (
        lambda d, e: conv2d(d.dimshuffle(1, 0, 2, 3), e.dimshuffle(1, 0, 2, 3), filter_flip=False),
        lambda d, e: conv2d(d.dimshuffle(1, 0, 2, 3), e.dimshuffle(1, 0, 2, 3)),
        "",
    ),
    "local_conv_of_spread": (
        lambda d, e: conv2d(spread(d), e),
        lambda d, e: conv2d(spread(d), e, border_mode=1),
        "",
    ),
    "local_gradient_of_conv_of_spread": (
        lambda d, e: conv2d_grad_wrt_weights(spread(d), e, (2, 3, 2, 2)),
        lambda d, e: conv2d_grad_wrt_weights(half_filled(d), e, (2, 3, 2, 2)),
        "",
    ),
    "local_part_of_gradient_by_images": (
        lambda d, e: conv2d_grad_wrt_inputs(d, e, (2, 3, 7, 8))[:, :, ::2, ::3],
        lambda d, e: conv2d_grad_wrt_inputs(d, e, (2, 3, 7, 8))[:, :, ::-1, ::3],
        "",
    ),
    "local_conv_of_zeros": (
        lambda d, e: conv2d(T.zeros((2, 3, 4, 5)), e),
        lambda d, e: conv2d(T.ones((2, 3, 4, 5)), e),
        "",
    ),
    "local_scaled_conv": (
        lambda d: conv2d(d, KERNELS) * np.array([[[[2.0]], [[3.0]]]]),
        lambda d, e: conv2d(d, e) * 2.0,
        "",
    ),
    "local_max_pool_first": (
        lambda d: pool_2d(T.maximum(d, 0), (2, 2), ignore_border=True),
        lambda d: pool_2d(T.maximum(d, 0), (3, 3), stride=(1, 1), ignore_border=True),
        "",
    ),
    "typed_list_inplace_opt": (
        lambda v: make_list([v, v]).reverse(),
        lambda v: make_list([v, v])[0],
        "",
    ),
    "local_inplace_sparse_block_gemv": (
        lambda m: sparse_block_gemv(T.exp(m), np.ones((3, 3, 3, 3)), m, ROWS, ROWS),
        lambda m: [sparse_block_gemv(m, np.ones((3, 3, 3, 3)), m, ROWS, ROWS), m],
        "",
    ),
    "local_inplace_sparse_block_outer": (
        lambda m: sparse_block_outer(T.zeros((3, 3, 3, 3)) + T.sum(m), m, m, ROWS, ROWS),
        lambda m: sparse_block_gemv(m, np.ones((3, 3, 3, 3)), m, ROWS, ROWS),
        "",
    ),
    "local_ctc_no_grad": (
        lambda m: ctc(m, np.array([[1], [2], [1]]), np.array([2, 2, 2])),
        lambda m: grad(T.sum(ctc(m, np.array([[1], [2], [1]]), np.array([2, 2, 2]))), m),
        "",
    ),
    "local_view_op": (
        lambda x: [view_op(x) + 1],
        lambda x: x + 1,
        "",
    ),
    "local_useless_fill": (
        lambda x, y: second(x, y),
        lambda x, s: second(x, s),
        "",
    ),
    "local_useless_elemwise": (
        lambda i: i ^ i,
        lambda i: i & 3,
        "",
    ),
    "local_useless_elemwise_comparison": (
        lambda x: x > x,
        lambda n: n < 0,
        "",
    ),
    "local_useless_switch": (
        lambda p, s: switch(p, s, s),
        lambda p, x, y: switch(p, x, y),
        "",
    ),
    "local_useless_reduce": (
        lambda s: T.sum(s),
        lambda x: T.sum(x),
        "",
    ),
    "local_IncSubtensor_serialize": (
        lambda x, y, v: T.add(y, inc_subtensor(x[1:], v), inc_subtensor(y[:1], v)),
        lambda f, y, v: y + inc_subtensor(f[1:], v),
        "",
    ),
    "topo_constant_folding": (
        lambda x: x * T.exp(T.constant(2.0)),
        lambda x, y: x * y,
        "",
    ),
    "local_neg_to_mul": (
        lambda x: -x,
        lambda x: 0 - x,
        "",
    ),
    "local_mul_zero": (
        lambda x: x * 0,
        lambda x, v: x * v,
        "",
    ),
    "local_add_canonizer": (
        lambda x: x - 1,
        lambda x: x + x,
        "",
    ),
    "local_integer_add_canonizer": (
        lambda i: i - 1,
        lambda x: x - 1,
        "",
    ),
    "local_mul_canonizer": (
        lambda x: x / x,
        lambda x: x / 0,
        "",
    ),
    "local_zero_div": (
        lambda x: 0 / x,
        lambda x: 1 / x,
        "",
    ),
    "local_intdiv_by_one": (
        lambda i, n: n // np.ones((3, 3), "int8"),
        lambda x: x // 1,
        "",
    ),
    "local_pow_canonicalize": (
        lambda x: x**1,
        lambda x: x**2,
        "",
    ),
    "local_greedy_distributor": (
        lambda x, y, z: y * (z - x / y),
        lambda x, y: x / (1 + x),
        "",
    ),
    "local_upcast_elemwise_constant_inputs": (
        lambda x: x + np.int8(2),
        lambda x: x > 0,
        "",
    ),
    "local_func_inv": (
        lambda p: ~~p,
        lambda x: T.exp(T.log(x)),
        "",
    ),
    "local_abs_lift": (
        lambda x: abs(-2.0 * x),
        lambda b: abs(b * b),
        "",
    ),
    "local_cast_cast": (
        lambda p: T.cast(T.cast(p, "int8"), "bool"),
        lambda i: T.cast(T.cast(i, "int8"), "int32"),
        "",
    ),
    "remove_tensor_copy": (
        lambda x: x.copy(),
        lambda x: x + 0,
        "",
    ),
    "local_fill_sink": (
        lambda r, c, s: second(r, s) * c,
        lambda x, v: v - v + x,
        "",
    ),
    "local_merge_switch_same_cond": (
        lambda p, f, b: switch(p, f, b) * switch(p, b, b),
        lambda p, x, y: switch(p, x, y) + x,
        "",
    ),
    "local_mul_switch_sink": (
        lambda p, x, y: y * switch(p, 0, x),
        lambda p, x, y: y * switch(p, 1, x),
        "",
    ),
    "local_div_switch_sink": (
        lambda p, x, y: switch(p, 0, x) / y,
        lambda p, x, y: y / switch(p, 0, x),
        "",
    ),
    "local_0_dot_x": (
        lambda x: T.dot(np.zeros((4, 3)), x),
        lambda x, v: T.dot(x, v),
        "",
    ),
    "local_dimshuffle_lift": (
        lambda x: x.T.T,
        lambda x: x.T,
        "",
    ),
    "local_lift_transpose_through_dot": (
        lambda x, y: T.dot(x, y).T,
        lambda x, v: T.dot(x, v).T,
        "",
    ),
    "local_reduce_broadcastable": (
        lambda r: T.sum(r, axis=0),
        lambda r: T.sum(r),
        "",
    ),
    "local_sum_prod_all_to_none": (
        lambda x: T.sum(x, axis=(0, 1)),
        lambda x: T.sum(x, axis=0),
        "",
    ),
    "local_op_of_op": (
        lambda x: x.sum(axis=0).sum(),
        lambda x: x.prod(axis=0).sum(),
        "",
    ),
    "local_reduce_join": (
        lambda b: T.stack([b, b]).sum(axis=0),
        lambda x, y: T.stack([x, y]).sum(axis=1),
        "",
    ),
    "local_sum_prod_div_dimshuffle": (
        lambda x, s: T.sum(x / s),
        lambda x, s: T.sum(s / x),
        "",
    ),
    "local_shape_to_shape_i": (
        lambda x: T.shape(x),
        lambda x: shape_i_op(0)(x),
        "",
    ),
    "local_track_shape_i": (
        lambda x, y: shape_i_op(0)(x + y),
        lambda x: shape_i_op(0)(x),
        "",
    ),
    "local_reduce_make_vector": (
        lambda s, t: T.sum(T.stack([s, t])),
        lambda v: T.prod(v),
        "",
    ),
    "local_tensor_scalar_tensor": (
        lambda s: T.tensor_from_scalar(T.scalar_from_tensor(s)),
        lambda s: T.exp(s),
        "",
    ),
    "local_scalar_tensor_scalar": (
        lambda s: T.tensor_from_scalar(
            T.scalar_from_tensor(T.tensor_from_scalar(T.scalar_from_tensor(s)))
        ),
        lambda s: T.tensor_from_scalar(T.scalar_from_tensor(s)),
        "",
    ),
    "local_useless_alloc": (
        lambda v: T.alloc(v, shape_i_op(0)(v)),
        lambda v: T.alloc(v, 4),
        "",
    ),
    "local_canonicalize_alloc": (
        lambda s: T.alloc(s, 1, 1),
        lambda s, n: T.alloc(s, n, 1),
        "",
    ),
    "local_merge_alloc": (
        lambda s, n: T.alloc(T.alloc(s, 1, n), 3, n),
        lambda s, n: T.alloc(T.alloc(s, n), 2),
        "",
    ),
    "local_useless_reshape": (
        lambda v: v.reshape((-1,)),
        lambda v: v.reshape((4,)),
        "",
    ),
    "local_reshape_chain": (
        lambda x: x.reshape((x.shape[0] * x.shape[1],)).reshape((3, 3)),
        lambda x: T.exp(x.reshape((9,))).reshape((3, 3)),
        "",
    ),
    "local_reshape_to_dimshuffle": (
        lambda s: s.reshape((1, 1)),
        lambda x: x.reshape((9,)),
        "",
    ),
    "local_useless_dimshuffle_in_reshape": (
        lambda r: r.dimshuffle(1, 0).reshape((-1, 2)),
        lambda x: x.dimshuffle(1, 0).reshape((-1,)),
        "",
    ),
    "local_reshape_lift": (
        lambda x: T.exp(x).reshape((-1,)),
        lambda x, y: (x * y).reshape((-1,)),
        "",
    ),
    "local_useless_rebroadcast": (
        lambda r: T.Rebroadcast((0, True))(r),
        lambda r: T.unbroadcast(r, 0),
        "",
    ),
    "local_rebroadcast_lift": (
        lambda c: T.unbroadcast(T.exp(c), 1),
        lambda c, r: T.unbroadcast(c * r[:, :1], 1),
        "",
    ),
    "local_join_1": (
        lambda x: T.Join()(0, x),
        lambda x: T.concatenate([x, x]),
        "",
    ),
    "local_join_empty": (
        lambda f: T.concatenate([f, np.zeros((0, 4))]),
        lambda v: T.concatenate([v, np.zeros(2)]),
        "",
    ),
    "local_join_make_vector": (
        lambda n, s: T.concatenate([T.stack([n]), T.stack([s])]),
        lambda v, s: T.concatenate([T.stack([s]), v, T.stack([s])]),
        "",
    ),
    "local_subtensor_of_join": (
        lambda x, r: T.concatenate([r, x])[0],
        lambda x, y: T.concatenate([x, y])[0],
        "",
    ),
    "local_dimshuffle_of_stack": (
        lambda r: T.exp(T.concatenate([T.sin(r), r]).T),
        lambda r: T.concatenate([T.sin(r), r]).T,
        "",
    ),
    "local_elemwise_of_stack": (
        lambda r, c: T.concatenate([T.exp(r), r]) * c[:1],
        lambda x: T.exp(T.concatenate([T.sin(x), x])),
        "",
    ),
    "local_useless_split": (
        lambda x: T.split(x, [x.shape[0]], 1),
        lambda v: T.split(v, [1, 3], 2),
        "",
    ),
    "local_useless_slice": (
        lambda x: x[1:, :],
        lambda x: x[::-1, 0:1],
        "",
    ),
    "local_useless_subtensor": (
        lambda r: r[::-1],
        lambda x: x[::-1],
        "",
    ),
    "local_sum_of_outer_product": (
        lambda x, y: (x.dimshuffle(0, 1, "x") * y.dimshuffle("x", 0, 1)).sum(axis=1),
        lambda x, y: (x.dimshuffle(0, 1, "x") * y.dimshuffle("x", 0, 1)).sum(axis=2),
        "",
    ),
    "local_sum_of_masked": (
        lambda x, p: x[p].sum(),
        lambda x, p: x[p[:, 0]].sum(),
        "",
    ),
    "local_number_by_mask": (
        lambda x, p: set_subtensor(x[p], 1.0),
        lambda x, p: set_subtensor(x[p], x[p] + 1.0),
        "",
    ),
    "local_elementwise_by_mask": (
        lambda x, y, p: set_subtensor(x[p.nonzero()], x[p.nonzero()] * y[p.nonzero()] + 1.0),
        lambda x, p: set_subtensor(x[p], x[p][::-1]),
        "",
    ),
    "local_subtensor_remove_broadcastable_index": (
        lambda r: r[0],
        lambda c: c[1:, 0],
        "",
    ),
    "local_subtensor_merge": (
        lambda v: v[1:][0],
        lambda v: v[1:][-1],
        "",
    ),
    "local_subtensor_lift": (
        lambda v: T.exp(v)[3],
        lambda x, y: (x * y)[::-1],
        "",
    ),
    "local_subtensor_make_vector": (
        lambda s, t: T.stack([s, t])[1],
        lambda v: v[1],
        "",
    ),
    "local_subtensor_of_alloc": (
        lambda s: T.alloc(s, 4)[-4],
        lambda v: T.alloc(v, 4)[1:],
        "",
    ),
    "local_subtensor_of_dot": (
        lambda x, v: T.dot(x, v)[1:],
        lambda x, y: T.dot(x, y.T)[::-1],
        "",
    ),
    "local_reduce_of_cast": (
        lambda i: T.sum(i, dtype="float32"),
        lambda i: T.sum(i, dtype="int64"),
        "",
    ),
    "local_batched_dot_of_vectors": (
        lambda x, y: T.batched_dot(x.dimshuffle(0, 1, "x"), y),
        lambda x, y: T.batched_dot(x.dimshuffle("x", 0, 1), y.dimshuffle("x", 0, 1)),
        "",
    ),
    "local_selection_of_sorted": (
        lambda x: T.argsort(x, axis=1)[:, :5],
        lambda x: T.argsort(x, axis=1)[:5],
        "",
    ),
    "local_subtensor_inc_subtensor": (
        lambda v, s, n: set_subtensor(v[n], s)[n],
        lambda v, s: inc_subtensor(v[1:], s)[1:],
        "",
    ),
    "local_useless_inc_subtensor": (
        lambda f, s: set_subtensor(f[:], s),
        lambda x, y: inc_subtensor(x[:], y),
        "",
    ),
    "local_useless_inc_subtensor_alloc": (
        lambda x, s: inc_subtensor(x[0], T.alloc(s, shape_i_op(1)(x))),
        lambda x, s: inc_subtensor(x[0], T.alloc(s, 3)),
        "",
    ),
    "local_incsubtensor_of_zeros": (
        lambda x: inc_subtensor(x[1:], 0.0),
        lambda x: set_subtensor(x[1:], 0.0),
        "",
    ),
    "local_incsubtensor_of_zeros_to_setsubtensor": (
        lambda s: inc_subtensor(T.constant(np.zeros(4))[1], s),
        lambda x, v: inc_subtensor(x[1:], v),
        "",
    ),
    "local_setsubtensor_of_constants": (
        lambda n: set_subtensor(T.alloc(1.5, 3, n)[1:], 1.5),
        lambda n: set_subtensor(T.alloc(1.5, 3, n)[1:], 2),
        "",
    ),
    "local_set_to_inc_subtensor": (
        lambda x, v: set_subtensor(x[1:], v + x[1:]),
        lambda x, i: set_subtensor(x[i], x[i] + 2),
        "",
    ),
    "local_adv_sub1_adv_inc_sub1": (
        lambda x, y: set_subtensor(x[np.array([0, 2, 1])], y)[np.array([0, 2, 1])],
        lambda x, y: inc_subtensor(x[np.array([0, 2, 0])], y)[np.array([0, 2, 0])],
        "",
    ),
    "local_scaled_increment": (
        lambda x, v, s: inc_subtensor(zeros(x)[1:], v) / s,
        lambda x, v, s: s * inc_subtensor(x[1:], v),
        "",
    ),
    "local_subtracted_increment": (
        lambda x, y, i, v: y - inc_subtensor(zeros(x)[i], v),
        lambda x, y, v: y - inc_subtensor(x[1:], v),
        "",
    ),
    "local_expm1": (
        lambda f: T.exp(f) - 1,
        lambda x: 1 - T.exp(x),
        "",
    ),
    "softmax_simplifier": (
        lambda x: T.exp(x) / T.exp(x).sum(axis=1, keepdims=True),
        lambda c: T.exp(c) / T.exp(c).sum(axis=1, keepdims=True),
        "",
    ),
    "local_softmax_of_shifted": (
        lambda x: softmax(x - T.max(x, axis=1, keepdims=True)),
        lambda x, y: softmax(x - y),
        "",
    ),
    "local_one_minus_erf": (
        lambda x: 1 - T.erf(x),
        lambda x: 2 - T.erf(x),
        "",
    ),
    "local_one_minus_erf2": (
        lambda x: 1 + -1 * T.erf(x),
        lambda x: 1 + -2 * T.erf(x),
        "",
    ),
    "local_one_plus_neg_erf": (
        lambda x: 1 + -T.erf(x),
        lambda x: 2 + -T.erf(x),
        "",
    ),
    "local_one_plus_erf": (
        lambda x: 1 + T.erf(x),
        lambda x: 3 + T.erf(x),
        "",
    ),
    "local_erf_minus_one": (
        lambda x: -1 + T.erf(x),
        lambda x: -2 + T.erf(x),
        "",
    ),
    "local_one_minus_erfc": (
        lambda x: 1 - T.erfc(x),
        lambda x: 2 - T.erfc(x),
        "",
    ),
    "local_one_minus_erfc2": (
        lambda x: 1 + -T.erfc(x),
        lambda x: 2 + -T.erfc(x),
        "",
    ),
    "local_one_minus_erfc3": (
        lambda x: 1 + -1 * T.erfc(x),
        lambda x: 1 + -3 * T.erfc(x),
        "",
    ),
    "local_erf_neg_minus_one": (
        lambda x: -1 + T.erfc(-x),
        lambda x: -2 + T.erfc(-x),
        "",
    ),
    "local_erf_neg_minus_one2": (
        lambda x: -1 + T.erfc(-1 * x),
        lambda x: -1 + T.erfc(-2 * x),
        "",
    ),
    "local_erfc_minus_one": (
        lambda x: -1 + T.erfc(x),
        lambda x: 1 + T.erfc(x),
        "",
    ),
    "local_useless_crossentropy_softmax_1hot_with_bias_dx_alloc": (
        lambda x, s: crossentropy_softmax_1hot_with_bias_dx(
            T.alloc(s, 3), softmax(x), np.array([0, 2, 1])
        ),
        lambda x, v: crossentropy_softmax_1hot_with_bias_dx(v, softmax(x), np.array([0, 2, 1])),
        "",
    ),
    "local_fill_to_alloc": (
        lambda x: T.fill(x, 0),
        lambda x: T.alloc(0.0, x.shape[0]),
        "",
    ),
    "local_log1p": (
        lambda x: T.log(x + 1),
        lambda x: T.log(1 * x),
        "",
    ),
    "local_log_add": (
        lambda f, r: T.log(T.exp(f) + T.exp(r)),
        lambda x, y: T.log(T.exp(x) + y),
        "",
    ),
    "log_softmax_simplifier": (
        lambda x: x - T.log(T.exp(x).sum(axis=1, keepdims=True)),
        lambda x: T.log(T.exp(x).sum(axis=1, keepdims=True)) - x,
        "",
    ),
    "local_inv_1_plus_exp": (
        lambda x: T.inv(T.exp(x) + 1),
        lambda x: 1 / (2 + T.exp(x)),
        "",
    ),
    "local_exp_over_1_plus_exp": (
        lambda x, y: y / (1 + T.exp(x)),
        lambda x, y: (1 + T.exp(x)) / y,
        "",
    ),
    "local_sigmoid_distributor": (
        lambda x, y, z: (y / sigmoid(x) + z) * sigmoid(x),
        lambda x, y, z: (y / z + z) * z,
        "",
    ),
    "local_sigm_times_exp": (
        lambda x: sigmoid(x) * T.exp(-x),
        lambda x: T.exp(x) * sigmoid(x),
        "",
    ),
    "local_1msigmoid": (
        lambda x: 1 - sigmoid(x),
        lambda x: 2 - sigmoid(x),
        "",
    ),
    "local_sigmoid_quotient": (
        lambda x: sigmoid(x) / (sigmoid(x) * 1),
        lambda x, y: y / (1 + sigmoid(x)),
        "",
    ),
    "logsigm_to_softplus": (
        lambda b: T.log(sigmoid(b)),
        lambda x: T.log(2 * sigmoid(x)),
        "",
    ),
    "log1msigm_to_softplus": (
        lambda x: T.log(1 - sigmoid(x)),
        lambda x: T.log(2 - sigmoid(x)),
        "",
    ),
    "log1p_neg_sigmoid": (
        lambda x: T.log1p(-sigmoid(x)),
        lambda x: T.log1p(sigmoid(x)),
        "",
    ),
    "log1pexp_to_softplus": (
        lambda f: T.log1p(T.exp(f)),
        lambda x: T.log1p(-T.exp(-abs(x) - 1)),
        "",
    ),
    "local_log_erfc": (
        lambda x: T.log(T.erfc(x)),
        lambda x: T.log(T.erf(abs(x))),
        "",
    ),
    "local_grad_log_erfc_neg": (
        lambda x, y: y * T.exp(-x * x) / T.erfc(x),
        lambda x: T.exp(-x) / T.erfc(x),
        "",
    ),
    "crossentropy_to_crossentropy_with_softmax_with_bias": (
        lambda x, v: T.nnet.categorical_crossentropy(softmax(x + v), np.array([0, 2, 1])),
        lambda x: T.nnet.categorical_crossentropy(softmax(x), np.array([0, 2, 1])),
        "local_softmax_with_bias",
    ),
    "local_elemwise_alloc": (
        lambda v, s: v * T.alloc(s, 4),
        lambda v: v * T.alloc(v, 4),
        "",
    ),
    "local_log_sum_exp": (
        lambda x: T.log(T.exp(x).sum()),
        lambda x: T.log(x.sum()),
        "",
    ),
    "local_exp_over_sum_exp": (
        lambda x: T.exp(x) / T.exp(x).sum(axis=0),
        lambda x: T.exp(x - x.max(axis=0)) / T.exp(x - x.max(axis=0)).sum(axis=0),
        "",
    ),
    "local_dot_to_dot22": (
        lambda x, y: T.dot(x, y),
        lambda x, v: T.dot(x, v),
        "",
    ),
    "local_dot22_to_dot22scalar": (
        lambda x, y, s: T.dot(x, y) * s,
        lambda x, y, z: T.dot(x, y) * z,
        "canonicalize local_dot_to_dot22",
    ),
    "local_gemm_to_gemv": (
        lambda x, v: T.dot(x, v),
        lambda x, y: T.dot(x, y),
        "",
    ),
    "local_sum_prod_mul_by_scalar": (
        lambda x: T.sum(-x),
        lambda i: T.sum(2 * i),
        "",
    ),
    "local_sumsqr2dot": (
        lambda x, y: T.sum(T.sqr(x.dimshuffle("x", 0, 1) * y.dimshuffle(0, "x", 1)), axis=(1, 2)),
        lambda x, y: T.sum(T.sqr(x.dimshuffle("x", 0, 1) * y.dimshuffle(0, "x", 1)), axis=(0, 2)),
        "",
    ),
    "local_argmax_pushdown": (
        lambda x: T.argmax(T.exp(x), axis=0),
        lambda x: T.max(T.exp(x), axis=0),
        "",
    ),
    "local_alloc_unary": (
        lambda s, n: T.exp(T.alloc(s, n, 3)),
        lambda v: T.exp(v),
        "",
    ),
    "local_opt_alloc": (
        lambda n: T.sum(T.alloc(np.int8(3), n)),
        lambda s, n: T.sum(T.alloc(s, n)),
        "",
    ),
    "local_incsubtensor_of_its_dtype": (
        lambda x: inc_subtensor(x[1:], 2.5),
        lambda x, v: inc_subtensor(x[1:], v),
        "",
    ),
    "local_add_specialize": (
        lambda r: r + np.zeros((3, 1)),
        lambda x: x + 1,
        "",
    ),
    "local_elemwise_sub_zeros": (
        lambda x: x - x,
        lambda x, y: x - y,
        "",
    ),
    "local_neg_neg": (
        lambda x: neg(neg(x)),
        lambda x: -abs(x),
        "",
    ),
    "local_neg_div_neg": (
        lambda x, y: -(-x / y),
        lambda x, y: -(x / y),
        "",
    ),
    "local_mul_specialize": (
        lambda x, y: -x * y,
        lambda x: mul(2, x),
        "",
    ),
    "local_mul_to_sqr": (
        lambda x: x * x,
        lambda x, y: x * y,
        "",
    ),
    "local_abs_merge": (
        lambda x, y: abs(x) * abs(y),
        lambda x, y: abs(x) / y,
        "",
    ),
    "local_div_to_inv": (
        lambda r: np.ones((3, 3)) / r,
        lambda x: 2 / x,
        "",
    ),
    "local_pow_specialize": (
        lambda v: v ** np.full(3, 2),
        lambda x: x**3,
        "",
    ),
    "local_abstract_batch_norm_train": (
        lambda x, y, z: AbstractBatchNormTrain((0,))(x, y, z)[0],
        lambda x, y, z: T.nnet.bn.batch_normalization_train(x, y, z)[0],
        "",
    ),
    "local_abstract_batch_norm_train_grad": (
        lambda x, y, z: AbstractBatchNormTrainGrad((0,))(x, y, z, z, z)[0],
        lambda x, y, z: AbstractBatchNormTrain((0,))(x, y, z)[0],
        "",
    ),
    "local_abstract_batch_norm_inference": (
        lambda x, y, z: AbstractBatchNormInference((0,))(x, y, z, z, z),
        lambda x, y, z: AbstractBatchNormTrain((0,))(x, y, z)[0],
        "",
    ),
    "local_softmax_with_bias": (
        lambda x, v: softmax(x + v),
        lambda x, y: softmax(x + y),
        "canonicalize",
    ),
    "local_logsoftmax": (
        lambda x: T.log(softmax(x)),
        lambda x: T.exp(softmax(x)),
        "",
    ),
    "local_logsoftmax_grad": (
        lambda x: grad(T.sum(T.sqr(T.log(softmax(x)))), x),
        lambda x: grad(T.sum(T.sqr(softmax(x))), x),
        "canonicalize",
    ),
    "local_advanced_indexing_crossentropy_onehot": (
        lambda x, a: T.log(softmax(x))[T.arange(x.shape[0]), a],
        lambda x, a: T.log(softmax(x))[a, T.arange(x.shape[0])],
        "canonicalize",
    ),
    "local_softmax_grad_to_crossentropy_with_softmax_grad": (
        lambda x: grad(T.mean(T.nnet.categorical_crossentropy(softmax(x), np.array([0, 2, 1]))), x),
        lambda x: grad(T.sum(T.sqr(softmax(x))), x),
        "canonicalize",
    ),
    "local_advanced_indexing_crossentropy_onehot_grad": (
        lambda x, a: grad(-T.sum(T.log(softmax(x)[T.arange(x.shape[0]), a])), x),
        lambda x: grad(T.sum(T.sqr(softmax(x))), x),
        "canonicalize",
    ),
    "graph_merge_softmax_with_crossentropy_softmax": (
        lambda x, v: [
            softmax_op(x + v),
            T.nnet.crossentropy_softmax_1hot_with_bias(x, v, np.array([0, 2, 1]))[0],
        ],
        lambda x, v, y: [
            softmax_op(y + v),
            T.nnet.crossentropy_softmax_1hot_with_bias(x, v, np.array([0, 2, 1]))[0],
        ],
        "local_softmax_with_bias",
    ),
    "crossentropy_to_crossentropy_with_softmax": (
        lambda x: T.nnet.categorical_crossentropy(softmax(x), np.array([0, 2, 1])),
        lambda x: T.nnet.categorical_crossentropy(T.exp(x), np.array([0, 2, 1])),
        "",
    ),
    "local_max_and_argmax": (
        lambda x: T.max(x),
        lambda x: T.max_and_argmax(x, axis=0),
        "",
    ),
    "local_max_to_min": (
        lambda x: neg(CAReduce(OPS["maximum"])(neg(x))),
        lambda x: neg(T.max(x)),
        "",
    ),
    "local_alloc_dimshuffle": (
        lambda v, n: T.alloc(v.dimshuffle("x", 0), n, 3),
        lambda v, n: T.alloc(v, n, 3),
        "",
    ),
    "local_dimshuffle_alloc": (
        lambda s, n: T.alloc(s, n).dimshuffle("x", "x", 0),
        lambda s, n: T.alloc(s, n).dimshuffle(0, "x"),
        "",
    ),
    "local_reshape_dimshuffle": (
        lambda v: v.dimshuffle("x", 0).reshape((-1, 2)),
        lambda x: x.dimshuffle(1, "x", 0).reshape((-1,)),
        "",
    ),
    "local_rebroadcast_subtensor": (
        lambda v: T.addbroadcast(v[2:3], 0),
        lambda v: T.addbroadcast(v[-1:], 0),
        "",
    ),
    "local_dimshuffle_subtensor": (
        lambda c: c[1:].dimshuffle(0),
        lambda r: r[:, 1:].dimshuffle(1, "x"),
        "",
    ),
    "local_ultra_fast_sigmoid": (
        lambda x: sigmoid(x),
        lambda x: T.tanh(x),
        "",
    ),
    "local_hard_sigmoid": (
        lambda x: sigmoid(x),
        lambda x: T.tanh(x),
        "",
    ),
    "local_remove_all_assert": (
        lambda x: Assert("negative")(x, T.all(x >= 0)) * 2,
        lambda x: x * 2,
        "",
    ),
    "local_remove_useless_assert": (
        lambda x, p: Assert("never")(x, T.constant(True), p.sum() > 0) * 2,
        lambda x: Assert("always")(x, T.constant(False)) * 2,
        "",
    ),
    "local_alloc_empty_to_zeros": (
        lambda x: alloc_empty("float64")(2, 3) + x,
        lambda x: T.alloc(1.0, 2, 3) + x,
        "",
    ),
    "use_c_blas": (
        lambda v, x: gemv(v, 2.0, x, v, 1.0),
        lambda x: gemm(x, 2.0, x, x, 1.0),
        "",
    ),
    "remove_hint_nodes": (
        lambda x: Hint(symmetric=True)(x) + 1,
        lambda x: x + 1,
        "",
    ),
    "no_transpose_symmetric": (
        lambda x: Hint(symmetric=True)(x).T + 1,
        lambda x: Hint(positive=True)(x).T + 1,
        "",
    ),
    "transinv_to_invtrans": (
        lambda x: linalg.matrix_inverse(x).T,
        lambda x: [linalg.matrix_inverse(x), linalg.matrix_inverse(x).T],
        "merge1",
    ),
    "inv_as_solve": (
        lambda x, v: T.dot(linalg.matrix_inverse(x), v),
        lambda x, v: [T.dot(linalg.matrix_inverse(x), v), linalg.matrix_inverse(x)],
        "merge1",
    ),
    "tag_solve_triangular": (
        lambda x, v: linalg.solve(linalg.cholesky(x).T, v),
        lambda x, v: linalg.solve(x.T, v),
        "",
    ),
    "psd_solve_with_chol": (
        lambda x, v: linalg.solve(linalg.psd(x), v),
        lambda x, v: linalg.solve(Hint(symmetric=True)(x), v),
        "",
    ),
    "local_det_chol": (
        lambda x: [linalg.det(x), linalg.cholesky(x)],
        lambda x: [linalg.det(x), linalg.Cholesky(on_error="nan")(x)],
        "",
    ),
    "local_log_prod_sqr": (
        lambda x: T.log(T.prod(T.sqr(x))),
        lambda x: T.log(T.prod(x)),
        "",
    ),
    "local_log_pow": (
        lambda x: T.log(x**4),
        lambda x, y: T.log(x**y),
        "",
    ),
    "local_diag_of_dot": (
        lambda x, y: linalg.trace(T.dot(x, y)),
        lambda x, y: [linalg.trace(T.dot(x, y)), T.dot(x, y)],
        "merge1",
    ),
    "local_csm_properties_csm": (
        lambda u, i: list(sparse.csm_properties(sparse.CSR(u, i[0], i[1], i[2]))),
        lambda csr: list(sparse.csm_properties(csr)),
        "",
    ),
    "local_dense_from_sparse_sparse_from_dense": (
        lambda x: sparse.csr_from_dense(x).toarray(),
        lambda csr: csr.toarray(),
        "",
    ),
    "local_csm_grad_c": (
        lambda csr: sparse.csm_grad()(*sparse.csm_properties(csr), *sparse.csm_properties(csr)),
        lambda whole: sparse.csm_grad()(*[*sparse.csm_properties(whole)] * 2),
        "",
    ),
    "local_entries": (
        lambda csr: -csr,
        lambda csr: csr.astype("complex64"),
        "",
    ),
    "local_mul_s_d": (
        lambda csc, x: csc * x,
        lambda whole, i: whole * i,
        "",
    ),
    "local_mul_s_v": (
        lambda csr, u: sparse.mul_s_v(csr, u),
        lambda whole, i: sparse.mul_s_v(whole, i[0]),
        "",
    ),
    "local_structured_add_s_v": (
        lambda csr, u: sparse.structured_add_s_v(csr, u),
        lambda csc, u: sparse.structured_add_s_v(csc, u),
        "",
    ),
    "local_scale": (
        lambda csc, u: sparse.col_scale(csc, u),
        lambda csc, f: sparse.col_scale(csc, f[0]),
        "",
    ),
    "local_add_s_s_data": (
        lambda csr: sparse.add_s_s_data(csr, csr),
        lambda whole: sparse.add_s_s_data(whole, whole),
        "",
    ),
    "local_sp_sum": (
        lambda csr: sparse.sp_sum(csr, axis=0),
        lambda whole: sparse.sp_sum(whole, axis=0),
        "",
    ),
    "local_structured_dot": (
        lambda csr, x: sparse.structured_dot(csr, x),
        lambda csr, csc: sparse.structured_dot(csr, csc),
        "",
    ),
    "csc_product_on_device": (
        lambda csc, x: sparse.structured_dot(csc, x),
        lambda csr, x: sparse.structured_dot(csr, x),
        "local_structured_dot",
    ),
    "local_usmm": (
        lambda csc, x, y: y - 2 * sparse.dot(csc, x),
        lambda csc, x, y: y - x * sparse.dot(csc, x),
        "",
    ),
    "local_usmm_csx": (
        lambda csc, x, y: sparse.usmm(np.float64(2), csc, x, y),
        lambda csc, x, y: sparse.usmm(np.float64(2), x, csc, y),
        "",
    ),
    "local_usmm_csc_dense_inplace": (
        lambda csc, x, y: sparse.usmm(np.float64(2), csc, x, T.exp(y)),
        lambda csc, x, y: y + csc,
        "local_usmm_csx",
    ),
    "local_sampling_dot_csr": (
        lambda x, y, csr: sparse.sampling_dot(x, y, csr),
        lambda x, y, csc: sparse.sampling_dot(x, y, csc),
        "",
    ),
    "local_inplace_remove0": (
        lambda csr: sparse.remove0(-csr),
        lambda csr: sparse.remove0(csr),
        "add_destroy_handler",
    ),
    "local_inplace_addsd_ccode": (
        lambda csr, x: csr + T.exp(x),
        lambda csr, f: csr + T.exp(f),
        "add_destroy_handler",
    ),
    "local_addsd_ccode": (
        lambda csr, x: csr + x,
        lambda csr: csr + csr,
        "",
    ),
    "local_join_cast": (
        lambda x, f: T.concatenate([x, f]),
        lambda x, y: T.concatenate([x, y]),
        "",
    ),
    "local_dot_cast": (
        lambda x, f: T.dot(x, f),
        lambda x, y: T.dot(x, y),
        "",
    ),
    "local_pow_specialize_device": (
        lambda x: x**5.25,
        lambda x: x**2.3,
        "",
    ),
}

#: name of a pass -> (a graph that it changes, one that it leaves, what runs before)
PASSES = {
    "scanOp_merge": (
        lambda v, w: [scan(lambda e, h: h * e, v, o)[0] for o in (v[0], w[0])],
        lambda v, w: [scan(lambda e, h: h * e, s, v[0])[0] for s in (v, w)],
        "",
    ),
    "random_make_inplace": (
        lambda x: raw_random.uniform(raw_random.uniform(GENERATOR, x.shape)[0], x.shape),
        lambda x: raw_random.uniform(GENERATOR, x.shape),
        "",
    ),
    "random_make_inplace_mrg": (
        lambda j: mrg_uniform.new(j + j, 1, "float64", (3,)),
        lambda j: mrg_uniform.new(j, 1, "float64", (3,)),
        "",
    ),
    "local_add_mul_fusion": (
        lambda x, y, z: (x + y) + z,
        lambda x, y, z: (x + y) * z,
        "",
    ),
    "composite_elemwise_fusion": (
        lambda x, y: T.exp(x) * y,
        lambda x, v: T.dot(T.exp(x), v),
        "",
    ),
    "map_reduce_fusion": (
        lambda x, y: T.sum(T.exp(x)),
        lambda x: [T.sum(T.exp(x)), T.exp(x)],
        "",
    ),
    "share_reduction_loops": (
        lambda x, y: [T.sum(x, axis=0), T.sum(x * y, axis=0)],
        lambda x, y: [T.sum(x, axis=0), T.sum(x * y, axis=1)],
        "map_reduce_fusion",
    ),
    "gather_fusion": (
        lambda u, v, a: T.exp(u[a] * v),
        lambda u, v, a: [T.exp(u[a] * v), u[a]],
        "merge1 canonicalize",
    ),
    "window_sums": (
        lambda x: zero_sided(x)[:, :-2] + zero_sided(x)[:, 1:-1],
        lambda x: zero_sided(x)[:, :-2] + zero_sided(x)[:, 2:],
        "merge1 canonicalize",
    ),
    "row_fusion": (
        lambda x: x / T.sum(x, axis=1, keepdims=True),
        lambda x: x / T.sum(x, axis=0, keepdims=True),
        "",
    ),
    "conv_elemwise_fusion": (
        lambda d, e: T.exp(conv2d(d, e)),
        lambda d, e: [T.exp(conv2d(d, e)), conv2d(d, e)],
        "merge1",
    ),
    "sums_of_deviations": (
        lambda x: T.sum(sqr(x - T.sum(x, axis=0, keepdims=True)), axis=0),
        lambda x, y: T.sum(sqr(x - T.sum(y, axis=0, keepdims=True)), axis=0),
        "",
    ),
    "gemm_optimizer": (
        lambda x, y, z: z + T.dot(x, y),
        lambda x, y, z: z * T.dot(x, y),
        "canonicalize local_dot_to_dot22",
    ),
    "local_inplace_setsubtensor": (
        lambda x, y: set_subtensor(T.exp(x)[0], y[0]),
        lambda x, y: set_subtensor(x[0], y[0]),
        "",
    ),
    "InplaceBlasOpt": (
        lambda x, y, z: T.exp(z) + T.dot(x, y),
        lambda x, y, z: z + T.dot(x, y),
        "canonicalize local_dot_to_dot22 gemm_optimizer",
    ),
    "inplace_elemwise_opt": (
        lambda x: T.exp(T.dot(x, x)),
        lambda x: T.exp(x),
        "",
    ),
    "place_on_device": (
        lambda x: T.exp(T.dot(x, x)),
        lambda x: T.jv(x, x),
        "",
    ),
}
#: passes that merge: each is tried on graphs of its own, before which nothing is merged
MERGES = ("merge1", "merge1.1", "merge", "merge1.2", "merge1.3", "merge2", "merge3")
#: passes that attach a feature to the graph, by the class of the feature
FEATURES = {"ShapeOpt": "ShapeFeature", "add_destroy_handler": "DestroyHandler"}
