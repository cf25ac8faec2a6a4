"""Legacy programs of linear algebra: Gaussian processes, filters, whitening, convolutions."""

from .encoding import attempt
from .register import program


def _data(np):
    points = np.linspace(-1, 1, 6).reshape(3, 2)
    return points, np.array([0.5, -1.0, 2.0])


@program("linear_models.gaussian_process")
def gaussian_process(theano, T, np):
    """The marginal likelihood, its gradient, and a step of ascent."""
    import theano.tensor.slinalg as slinalg  # the old package does not load it by itself

    X, y = T.dmatrix("X"), T.dvector("y")
    log_scale, log_noise = theano.shared(0.1, "log_scale"), theano.shared(-1.0, "log_noise")
    squares = T.sqr(X).sum(axis=1)
    distances = squares[:, None] - 2 * T.dot(X, X.T) + squares[None, :]
    noise = T.exp(log_noise) * T.identity_like(T.dot(X, X.T))
    K = T.exp(-distances * T.exp(log_scale) / 2) + noise
    results = {}
    L = slinalg.cholesky(K)
    half = slinalg.solve_lower_triangular(L, y)
    forms = {
        "cholesky": T.dot(half, half) / 2 + T.log(T.diag(L)).sum(),
        "solve": T.dot(y, slinalg.solve(K, y)) / 2 + T.log(T.nlinalg.det(K)) / 2,
        "inverse": T.dot(y, T.dot(T.nlinalg.matrix_inverse(K), y)) / 2
        + T.log(T.nlinalg.det(K)) / 2,
    }
    for label, cost in forms.items():
        grads = T.grad(cost, [log_scale, log_noise])
        for mode in ("FAST_COMPILE", "FAST_RUN"):
            f = theano.function([X, y], [cost] + grads, mode=mode)
            results["%s/%s" % (label, mode)] = f(*_data(np))
        pairs = (log_scale, grads[0]), (log_noise, grads[1])
        updates = [(p, p - 0.1 * g) for p, g in pairs]
        step = theano.function([X, y], cost, updates=updates)
        results["%s after steps" % label] = [step(*_data(np)) for _ in range(3)]
        log_scale.set_value(0.1)
        log_noise.set_value(-1.0)
    return results


@program("linear_models.kalman_filter")
def kalman_filter(theano, T, np):
    """Three steps of a filter, and the gradient of its last state by the transition."""
    F, H, m, P = T.dmatrix("F"), T.dmatrix("H"), T.dvector("m"), T.dmatrix("P")
    state, covariance = m, P
    for z in (1.0, 0.5, 2.0):
        state, covariance = T.dot(F, state), T.dot(T.dot(F, covariance), F.T) + T.eye(2)
        S = T.dot(T.dot(H, covariance), H.T) + T.eye(1)
        gain = T.dot(T.dot(covariance, H.T), T.nlinalg.matrix_inverse(S))
        state = state + T.dot(gain, z - T.dot(H, state))
        covariance = T.dot(T.eye(2) - T.dot(gain, H), covariance)
    outputs = [state, covariance, T.grad(state.sum(), F)]
    values = np.array([[1.0, 0.5], [0.0, 0.9]]), np.array([[1.0, 0.0]]), np.zeros(2), np.eye(2)
    return {
        mode: theano.function([F, H, m, P], outputs, mode=mode)(*values)
        for mode in ("FAST_COMPILE", "FAST_RUN")
    }


@program("linear_models.whitening")
def whitening(theano, T, np):
    """By eigenvectors, up to a rotation, and principal components by singular values."""
    x = T.dmatrix("x")
    value = np.array([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.25], [3.0, 1.0]])
    centred = x - x.mean(axis=0)
    w, v = T.nlinalg.eigh(T.dot(centred.T, centred) / x.shape[0])
    white = T.dot(T.dot(centred, v) / T.sqrt(w), v.T)
    _, s, vt = T.nlinalg.svd(centred, full_matrices=False)
    outputs = [white, w, s, abs(vt), T.grad((white**3).sum(), x)]
    return {
        mode: theano.function([x], outputs, mode=mode)(value)
        for mode in ("FAST_COMPILE", "FAST_RUN")
    }


@program("linear_models.fourier")
def fourier(theano, T, np):
    """A convolution by Fourier transforms, and its gradient."""
    import theano.tensor.fft as fft  # the old package does not load it by itself

    x, k = T.dmatrix("x"), T.dmatrix("k")
    value = np.arange(10.0).reshape(2, 5) / 7, np.array([[1.0, -0.5, 0.25, 0.0, 0.0]] * 2)
    results = {}
    for norm in (None, "ortho", "no_norm"):
        a, b = fft.rfft(x, norm), fft.rfft(k, norm)
        real = a[:, :, 0] * b[:, :, 0] - a[:, :, 1] * b[:, :, 1]
        imaginary = a[:, :, 0] * b[:, :, 1] + a[:, :, 1] * b[:, :, 0]
        y = fft.irfft(T.stack([real, imaginary], axis=2), norm, is_odd=True)
        f = theano.function([x, k], [y] + T.grad((y**2).sum(), [x, k]))
        results[str(norm)] = f(*value)
    results["other norm"] = attempt(lambda: fft.rfft(x, "unitary"))
    results["vector"] = attempt(lambda: fft.rfft(T.dvector()))
    results["is_odd"] = attempt(lambda: fft.irfft(T.dtensor3(), is_odd=3))
    return results


@program("linear_models.hints")
def hints(theano, T, np):
    """sandbox.linalg: hints, and a bound of eigenvalues."""
    from theano.sandbox import linalg

    x, b = T.dmatrix("x"), T.dvector("b")
    values = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, -2.0])
    cases = {
        "solve": linalg.solve(linalg.psd(x), b),
        "bound": linalg.spectral_radius_bound(x, 3),
        "inverse times": T.dot(linalg.matrix_inverse(linalg.psd(x)), b),
        "log det": T.log(linalg.det(x)) + linalg.cholesky(x).sum(),
    }
    return {
        "%s/%s" % (label, mode): theano.function([x, b], out, mode=mode, on_unused_input="ignore")(
            *values
        )
        for label, out in cases.items()
        for mode in ("FAST_COMPILE", "FAST_RUN")
    }
