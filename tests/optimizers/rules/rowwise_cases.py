"""Programs that reduce rows and go over them again, on arrays of any rank; vectors are rows."""

from opwise import tensor as T
from opwise.gradient import grad


def last(reduction, x):
    return reduction(x, axis=-1, keepdims=True)


def centred(x):
    return x - last(T.mean, x)


def layer_norm(x, g, b):
    return centred(x) / T.sqrt(last(T.var, x) + 1e-5) * g + b


def soft_max(x):
    e = T.exp(x - last(T.max, x))
    return e / last(T.sum, e)


def log_sum_exp(x):
    highest = T.max(x, axis=-1)
    shifted = x - T.shape_padright(highest)
    return T.log(T.sum(T.exp(shifted), axis=-1)) + highest


def direction(x):
    return x / T.sqrt(last(T.sum, x * x))


#: name -> (number of matrices, of vectors, function of them)
PROGRAMS = {
    "centred": (1, 0, centred),
    "standardised": (1, 0, lambda x: centred(x) / T.std(x, axis=-1, keepdims=True)),
    "layer norm": (1, 2, layer_norm),
    "layer norm's gradient": (
        2,
        2,
        lambda x, w, g, b: grad(T.sum(layer_norm(x, g, b) * w), [x, g, b]),
    ),
    "softmax": (2, 0, lambda x, w: soft_max(x * w)),
    "its gradient": (2, 0, lambda x, w: grad(T.sum(soft_max(x) * w), x)),
    "attention weights": (2, 0, lambda x, mask: T.nnet.softmax(x / 8 + mask) * mask),
    "log-sum-exp": (1, 0, log_sum_exp),
    "log-sum-exp and its gradient": (
        1,
        0,
        lambda x: [log_sum_exp(x), grad(T.sum(log_sum_exp(x)), x)],
    ),
    "cosines": (2, 0, lambda x, y: T.sum(direction(x) * direction(y), axis=-1)),
    "smallest and largest": (
        1,
        0,
        lambda x: (x - last(T.min, x)) / (last(T.max, x) - last(T.min, x)),
    ),
    "above the mean": (1, 0, lambda x: [T.switch(x > last(T.mean, x), x, 0), last(T.mean, x)]),
    "two passes behind each other": (
        1,
        0,
        lambda x: soft_max(centred(soft_max(x))) * last(T.prod, centred(x) + 1),
    ),
}
