"""Steps of learning: networks, factors, embeddings, and policies.

Gradients are written by hand, as one does in numpy; ``derived`` leaves them to the library.
"""

from __future__ import annotations

import numpy as np

from benchmark.numpy_programs.program import Programs

PROGRAMS = Programs()
program = PROGRAMS.program


def layer(rng, rows, columns):
    return rng.normal(size=(rows, columns)) / np.sqrt(rows)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# --- a variational auto-encoder -------------------------------------------------------------------


def _vae(rng, n):
    pixels, hidden, latent = 4 * n, 2 * n, max(2, n // 8)
    params = {
        "encode": layer(rng, pixels, hidden), "encode_b": np.zeros(hidden),
        "mean": layer(rng, hidden, latent), "spread": layer(rng, hidden, latent),
        "decode": layer(rng, latent, hidden), "decode_b": np.zeros(hidden),
        "out": layer(rng, hidden, pixels), "out_b": np.zeros(pixels),
    }  # fmt: skip
    x = (rng.random((n, pixels)) < 0.3).astype(float)
    return params, x, rng.normal(size=(n, latent)), 1e-3


def vae_loss(p, x, noise):
    hidden = np.tanh(x @ p["encode"] + p["encode_b"])
    mean, log_var = hidden @ p["mean"], hidden @ p["spread"]
    z = mean + np.exp(0.5 * log_var) * noise
    logits = np.tanh(z @ p["decode"] + p["decode_b"]) @ p["out"] + p["out_b"]
    likelihood = (np.logaddexp(0, logits) - x * logits).sum()
    divergence = -0.5 * (1 + log_var - mean**2 - np.exp(log_var)).sum()
    return (likelihood + divergence) / len(x)


def _vae_derived(value_and_grad):
    def step(p, x, noise, rate):
        loss, g = value_and_grad(vae_loss)(p, x, noise)
        return loss, {name: p[name] - rate * g[name] for name in p}

    return step


@program("learning", _vae, 8, 100, numba=False, derived=_vae_derived)
def vae_step(p, x, noise, rate):
    n = len(x)
    hidden = np.tanh(x @ p["encode"] + p["encode_b"])
    mean, log_var = hidden @ p["mean"], hidden @ p["spread"]
    spread = np.exp(0.5 * log_var)
    z = mean + spread * noise
    back = np.tanh(z @ p["decode"] + p["decode_b"])
    logits = back @ p["out"] + p["out_b"]
    loss = (np.logaddexp(0, logits) - x * logits).sum() / n
    loss += -0.5 * (1 + log_var - mean**2 - np.exp(log_var)).sum() / n

    g = {}
    d_logits = (sigmoid(logits) - x) / n
    g["out"], g["out_b"] = back.T @ d_logits, d_logits.sum(axis=0)
    d_back = d_logits @ p["out"].T * (1 - back**2)
    g["decode"], g["decode_b"] = z.T @ d_back, d_back.sum(axis=0)
    d_z = d_back @ p["decode"].T
    d_mean = d_z + mean / n
    d_log_var = d_z * noise * 0.5 * spread + 0.5 * (np.exp(log_var) - 1) / n
    g["mean"], g["spread"] = hidden.T @ d_mean, hidden.T @ d_log_var
    d_hidden = (d_mean @ p["mean"].T + d_log_var @ p["spread"].T) * (1 - hidden**2)
    g["encode"], g["encode_b"] = x.T @ d_hidden, d_hidden.sum(axis=0)
    return loss, {name: p[name] - rate * g[name] for name in p}


# --- a generative adversarial network -------------------------------------------------------------


def _gan(rng, n):
    generator = [layer(rng, 16, 2 * n), np.zeros(2 * n), layer(rng, 2 * n, n), np.zeros(n)]
    critic = [layer(rng, n, 2 * n), np.zeros(2 * n), layer(rng, 2 * n, 1), np.zeros(1)]
    return generator, critic, rng.normal(size=(2 * n, n)), rng.normal(size=(2 * n, 16)), 0.01


def generated(generator, noise):
    w1, b1, w2, b2 = generator
    return np.tanh(np.maximum(noise @ w1 + b1, 0) @ w2 + b2)


def criticized(critic, x):
    w1, b1, w2, b2 = critic
    a = x @ w1 + b1
    return (np.where(a > 0, a, 0.2 * a) @ w2 + b2)[:, 0]


def critic_loss(critic, generator, real, noise):
    fake = generated(generator, noise)
    right = np.logaddexp(0, -criticized(critic, real)).mean()
    return right + np.logaddexp(0, criticized(critic, fake)).mean()


def generator_loss(generator, critic, noise):
    return np.logaddexp(0, -criticized(critic, generated(generator, noise))).mean()


def _gan_derived(value_and_grad):
    def step(generator, critic, real, noise, rate):
        critic_cost, g = value_and_grad(critic_loss)(critic, generator, real, noise)
        critic = [w - rate * d for w, d in zip(critic, g, strict=True)]
        cost, g = value_and_grad(generator_loss)(generator, critic, noise)
        return critic_cost, cost, [w - rate * d for w, d in zip(generator, g, strict=True)], critic

    return step


def criticized_back(critic, x, of_score):
    """Return the score's gradients by the critic's weights and by x."""
    w1, b1, w2, _b2 = critic
    a = x @ w1 + b1
    d_score = of_score[:, None]
    d_a = d_score @ w2.T * np.where(a > 0, 1.0, 0.2)
    h = np.where(a > 0, a, 0.2 * a)
    return [x.T @ d_a, d_a.sum(0), h.T @ d_score, d_score.sum(0)], d_a @ w1.T


@program("learning", _gan, 6, 64, numba=False, derived=_gan_derived)
def gan_step(generator, critic, real, noise, rate):
    n = len(real)
    fake = generated(generator, noise)
    on_real, on_fake = criticized(critic, real), criticized(critic, fake)
    critic_cost = np.logaddexp(0, -on_real).mean() + np.logaddexp(0, on_fake).mean()
    by_real, _ = criticized_back(critic, real, -sigmoid(-on_real) / n)
    by_fake, _ = criticized_back(critic, fake, sigmoid(on_fake) / n)
    critic = [w - rate * (a + b) for w, a, b in zip(critic, by_real, by_fake, strict=True)]

    score = criticized(critic, fake)
    cost = np.logaddexp(0, -score).mean()
    _, d_fake = criticized_back(critic, fake, -sigmoid(-score) / n)
    w1, b1, w2, _b2 = generator
    hidden = np.maximum(noise @ w1 + b1, 0)
    d_out = d_fake * (1 - fake**2)
    d_hidden = d_out @ w2.T * (hidden > 0)
    g = [noise.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_out, d_out.sum(0)]
    return critic_cost, cost, [w - rate * d for w, d in zip(generator, g, strict=True)], critic


# --- a block of a transformer, trained by Adam ----------------------------------------------------


def _transformer(rng, n):
    batch, length, width, heads, words = 4, n, 4 * (n // 4), 4, 3 * n
    p = {
        "embed": layer(rng, words, width), "place": layer(rng, length, width),
        "qkv": layer(rng, width, 3 * width), "proj": layer(rng, width, width),
        "gain1": np.ones(width), "gain2": np.ones(width),
        "up": layer(rng, width, 4 * width), "down": layer(rng, 4 * width, width),
    }  # fmt: skip
    m = {k: np.zeros_like(v) for k, v in p.items()}
    v = {k: np.zeros_like(w) for k, w in p.items()}
    tokens = rng.integers(0, words, (batch, length + 1))
    return p, m, v, 1.0, tokens[:, :-1], tokens[:, 1:], heads


def normalized(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def split_heads(x, heads):
    b, t, d = x.shape
    return x.reshape(b, t, heads, d // heads).transpose(0, 2, 1, 3)


def attention(qkv, heads):
    q, k, v = (split_heads(part, heads) for part in np.split(qkv, 3, axis=-1))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    t = scores.shape[-1]
    scores = np.where(np.tril(np.ones((t, t), dtype=bool)), scores, -1e9)
    return softmax(scores), q, k, v


def transformer_loss(p, tokens, targets, heads):
    x = p["embed"][tokens] + p["place"]
    weights, _q, _k, v = attention(normalized(x) * p["gain1"] @ p["qkv"], heads)
    b, t, d = x.shape
    x = x + (weights @ v).transpose(0, 2, 1, 3).reshape(b, t, d) @ p["proj"]
    x = x + gelu(normalized(x) * p["gain2"] @ p["up"]) @ p["down"]
    logits = normalized(x) @ p["embed"].T
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(log_p, targets[..., None], axis=-1).mean()


def adam(p, g, m, v, t, rate=1e-3, b1=0.9, b2=0.999):
    m = {k: b1 * m[k] + (1 - b1) * g[k] for k in p}
    v = {k: b2 * v[k] + (1 - b2) * g[k] ** 2 for k in p}
    p = {k: p[k] - rate * (m[k] / (1 - b1**t)) / (np.sqrt(v[k] / (1 - b2**t)) + 1e-8) for k in p}
    return p, m, v


def _transformer_derived(value_and_grad):
    def step(p, m, v, t, tokens, targets, heads):
        loss, g = value_and_grad(transformer_loss)(p, tokens, targets, heads)
        return (loss, *adam(p, g, m, v, t))

    return step


def normalized_back(d, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    y = centred * inverse
    return inverse * (d - d.mean(axis=-1, keepdims=True) - y * (d * y).mean(axis=-1, keepdims=True))


def gelu_back(d, x):
    inner = 0.7978845608 * (x + 0.044715 * x**3)
    t = np.tanh(inner)
    return d * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * 0.7978845608 * (1 + 3 * 0.044715 * x**2))


@program("learning", _transformer, 8, 64, numba=False, derived=_transformer_derived)
def transformer_step(p, m, v, t, tokens, targets, heads):
    x0 = p["embed"][tokens] + p["place"]
    batch, length, width = x0.shape
    n1 = normalized(x0)
    a1 = n1 * p["gain1"]
    weights, q, k, values = attention(a1 @ p["qkv"], heads)
    mixed = (weights @ values).transpose(0, 2, 1, 3).reshape(batch, length, width)
    x1 = x0 + mixed @ p["proj"]
    n2 = normalized(x1)
    a2 = n2 * p["gain2"]
    up = a2 @ p["up"]
    act = gelu(up)
    x2 = x1 + act @ p["down"]
    n3 = normalized(x2)
    logits = n3 @ p["embed"].T
    probabilities = softmax(logits)
    picked = np.take_along_axis(probabilities, targets[..., None], axis=-1)
    loss = -np.log(picked).mean()

    g = {}
    d_logits = (probabilities - (targets[..., None] == np.arange(logits.shape[-1]))) / targets.size
    g_embed = np.einsum("btw,btd->wd", d_logits, n3)
    d_x2 = normalized_back(d_logits @ p["embed"], x2)
    g["down"] = np.einsum("bth,btd->hd", act, d_x2)
    d_up = gelu_back(d_x2 @ p["down"].T, up)
    g["up"] = np.einsum("btd,bth->dh", a2, d_up)
    d_a2 = d_up @ p["up"].T
    g["gain2"] = (d_a2 * n2).sum(axis=(0, 1))
    d_x1 = d_x2 + normalized_back(d_a2 * p["gain2"], x1)
    g["proj"] = np.einsum("bti,btj->ij", mixed, d_x1)
    d_mixed = split_heads(d_x1 @ p["proj"].T, heads)
    d_weights = d_mixed @ values.transpose(0, 1, 3, 2)
    d_values = weights.transpose(0, 1, 3, 2) @ d_mixed
    d_scores = weights * (d_weights - (d_weights * weights).sum(axis=-1, keepdims=True))
    d_scores = d_scores / np.sqrt(q.shape[-1])
    parts = (d_scores @ k, d_scores.transpose(0, 1, 3, 2) @ q, d_values)
    d_qkv = np.concatenate(
        [part.transpose(0, 2, 1, 3).reshape(batch, length, width) for part in parts], axis=-1
    )
    g["qkv"] = np.einsum("bti,btj->ij", a1, d_qkv)
    d_a1 = d_qkv @ p["qkv"].T
    g["gain1"] = (d_a1 * n1).sum(axis=(0, 1))
    d_x0 = d_x1 + normalized_back(d_a1 * p["gain1"], x0)
    g["place"] = d_x0.sum(axis=0)
    np.add.at(g_embed, tokens, d_x0)
    g["embed"] = g_embed
    return (loss, *adam(p, g, m, v, t))


# --- a language model of letters: LSTM ------------------------------------------------------------


def _lstm(rng, n):
    letters, batch = 30, 8
    p = [
        rng.normal(size=(letters, 4 * n)) * 0.1, layer(rng, n, 4 * n), np.zeros(4 * n),
        layer(rng, n, letters), np.zeros(letters),
    ]  # fmt: skip
    text = rng.integers(0, letters, (n // 2 + 1, batch))
    return p, np.zeros((batch, n)), np.zeros((batch, n)), text[:-1], text[1:]


def lstm_loss(p, h, c, text, targets):
    wx, wh, b, wy, by = p
    n = h.shape[1]
    loss = 0.0
    for t in range(len(text)):
        a = wx[text[t]] + h @ wh + b
        i, f, o = sigmoid(a[:, :n]), sigmoid(a[:, n : 2 * n]), sigmoid(a[:, 2 * n : 3 * n])
        c = f * c + i * np.tanh(a[:, 3 * n :])
        h = o * np.tanh(c)
        y = h @ wy + by
        shifted = y - y.max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        loss -= log_p[np.arange(len(y)), targets[t]].mean()
    return loss


def _lstm_derived(value_and_grad):
    def lstm_gradients(p, h, c, text, targets):
        loss, g = value_and_grad(lstm_loss)(p, h, c, text, targets)
        return loss, [np.clip(d, -5, 5) for d in g]

    return lstm_gradients


@program("learning", _lstm, 6, 64, numba=False, derived=_lstm_derived)
def lstm_language_model(p, h, c, text, targets):
    wx, wh, b, wy, by = p
    steps, batch = text.shape
    n = h.shape[1]
    hs, cs = np.zeros((steps + 1, batch, n)), np.zeros((steps + 1, batch, n))
    gates, ps = np.zeros((steps, batch, 4 * n)), np.zeros((steps, batch, len(by)))
    hs[0], cs[0] = h, c
    loss = 0.0
    for t in range(steps):
        a = wx[text[t]] + hs[t] @ wh + b
        gates[t, :, : 3 * n] = sigmoid(a[:, : 3 * n])
        gates[t, :, 3 * n :] = np.tanh(a[:, 3 * n :])
        i, f, o, g = np.split(gates[t], 4, axis=1)
        cs[t + 1] = f * cs[t] + i * g
        hs[t + 1] = o * np.tanh(cs[t + 1])
        ps[t] = softmax(hs[t + 1] @ wy + by)
        loss -= np.log(ps[t, np.arange(batch), targets[t]]).mean()
    d_wx, d_wh, d_b = np.zeros_like(wx), np.zeros_like(wh), np.zeros_like(b)
    d_wy, d_by = np.zeros_like(wy), np.zeros_like(by)
    d_h, d_c = np.zeros((batch, n)), np.zeros((batch, n))
    for t in reversed(range(steps)):
        d_y = ps[t].copy()
        d_y[np.arange(batch), targets[t]] -= 1
        d_y /= batch
        d_wy += hs[t + 1].T @ d_y
        d_by += d_y.sum(axis=0)
        d_h = d_y @ wy.T + d_h
        i, f, o, g = np.split(gates[t], 4, axis=1)
        tanh_c = np.tanh(cs[t + 1])
        d_c = d_c + d_h * o * (1 - tanh_c**2)
        d_a = np.concatenate(
            [
                d_c * g * i * (1 - i), d_c * cs[t] * f * (1 - f), d_h * tanh_c * o * (1 - o),
                d_c * i * (1 - g**2),
            ],
            axis=1,
        )  # fmt: skip
        d_c = d_c * f
        np.add.at(d_wx, text[t], d_a)
        d_wh += hs[t].T @ d_a
        d_b += d_a.sum(axis=0)
        d_h = d_a @ wh.T
    gradients = [d_wx, d_wh, d_b, d_wy, d_by]
    for gradient in gradients:
        np.clip(gradient, -5, 5, out=gradient)
    return loss, gradients


# --- embeddings of words, and factors of ratings --------------------------------------------------


def _word2vec(rng, n):
    words, width, negatives = 20 * n, 64, 5
    return (
        layer(rng, words, width), layer(rng, words, width), rng.integers(0, words, 4 * n),
        rng.integers(0, words, 4 * n), rng.integers(0, words, (4 * n, negatives)), 0.025,
    )  # fmt: skip


def word2vec_loss(tables, centres, contexts, negatives):
    inner, outer = tables
    v = inner[centres]
    right = np.logaddexp(0, -(v * outer[contexts]).sum(axis=1)).sum()
    return right + np.logaddexp(0, np.einsum("nd,nkd->nk", v, outer[negatives])).sum()


def _word2vec_derived(value_and_grad):
    def step(inner, outer, centres, contexts, negatives, rate):
        loss, (by_inner, by_outer) = value_and_grad(word2vec_loss)(
            (inner, outer), centres, contexts, negatives
        )
        return loss, inner - rate * by_inner, outer - rate * by_outer

    return step


@program("learning", _word2vec, 5, 200, numba=False, derived=_word2vec_derived)
def word2vec(inner, outer, centres, contexts, negatives, rate):
    v, u, w = inner[centres], outer[contexts], outer[negatives]
    right, wrong = (v * u).sum(axis=1), np.einsum("nd,nkd->nk", v, w)
    loss = np.logaddexp(0, -right).sum() + np.logaddexp(0, wrong).sum()
    by_right, by_wrong = -sigmoid(-right)[:, None], sigmoid(wrong)
    d_v = by_right * u + np.einsum("nk,nkd->nd", by_wrong, w)
    inner, outer = inner.copy(), outer.copy()
    np.add.at(inner, centres, -rate * d_v)
    np.add.at(outer, contexts, -rate * by_right * v)
    np.add.at(outer, negatives, -rate * by_wrong[:, :, None] * v[:, None, :])
    return loss, inner, outer


def _ratings(rng, n):
    return (
        rng.normal(size=(n, 16)) * 0.1, rng.normal(size=(2 * n, 16)) * 0.1,
        rng.integers(0, n, 10 * n), rng.integers(0, 2 * n, 10 * n),
        rng.integers(1, 6, 10 * n).astype(float), 0.01, 0.02,
    )  # fmt: skip


@program("learning", _ratings, 8, 200)
def matrix_factorization(users, items, who, what, ratings, rate, decay):
    users, items = users.copy(), items.copy()
    total = 0.0
    for k in range(len(ratings)):
        u, i = who[k], what[k]
        error = ratings[k] - users[u] @ items[i]
        before = users[u].copy()
        users[u] += rate * (error * items[i] - decay * users[u])
        items[i] += rate * (error * before - decay * items[i])
        total += error * error
    return np.sqrt(total / len(ratings)), users, items


# --- graphs, diffusion, policies ------------------------------------------------------------------


def _graph(rng, n):
    edges = rng.integers(0, n, (2, 5 * n))
    features = rng.normal(size=(n, 32))
    weights = [layer(rng, 32, 32), layer(rng, 32, 7)]
    return weights, features, edges[0], edges[1], rng.integers(0, 7, n), 0.1


def neighbours(h, source, target, scale):
    out = np.zeros_like(h)
    np.add.at(out, target, (h * scale)[source])
    return (out + h * scale) * scale


def graph_loss(weights, features, source, target, labels):
    scale = 1 / np.sqrt(np.bincount(target, minlength=len(features)) + 1.0)[:, None]
    h = np.maximum(neighbours(features @ weights[0], source, target, scale), 0)
    y = neighbours(h @ weights[1], source, target, scale)
    top = y.max(axis=1)
    log_sum = np.log(np.exp(y - top[:, None]).sum(axis=1)) + top
    return (log_sum - y[np.arange(len(y)), labels]).mean()


def _graph_derived(value_and_grad):
    def graph_derived(weights, features, source, target, labels, rate):
        loss, g = value_and_grad(graph_loss)(weights, features, source, target, labels)
        return loss, [w - rate * d for w, d in zip(weights, g, strict=True)]

    return graph_derived


@program("learning", _graph, 12, 1500, numba=False, derived=_graph_derived)
def graph_convolution(weights, features, source, target, labels, rate):
    n = len(features)
    scale = 1 / np.sqrt(np.bincount(target, minlength=n) + 1.0)[:, None]
    a = neighbours(features @ weights[0], source, target, scale)
    h = np.maximum(a, 0)
    y = neighbours(h @ weights[1], source, target, scale)
    p = softmax(y)
    loss = -np.log(p[np.arange(n), labels]).mean()
    p[np.arange(n), labels] -= 1
    d_hw = neighbours(p / n, target, source, scale)
    d_a = d_hw @ weights[1].T * (a > 0)
    d_xw = neighbours(d_a, target, source, scale)
    g = [features.T @ d_xw, h.T @ d_hw]
    return loss, [w - rate * d for w, d in zip(weights, g, strict=True)]


def _diffusion(rng, n):
    betas = np.linspace(1e-4, 0.02, 100)
    params = [layer(rng, n + 32, 2 * n), np.zeros(2 * n), layer(rng, 2 * n, n), np.zeros(n)]
    return (
        params, [w.copy() for w in params], np.cumprod(1 - betas), rng.normal(size=(2 * n, n)),
        rng.integers(0, 100, 2 * n), rng.normal(size=(2 * n, n)), 1e-3,
    )  # fmt: skip


def time_features(t):
    angles = t[:, None] * np.exp(-np.log(10000.0) * np.arange(16) / 16)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def diffusion_loss(params, kept, x, t, noise):
    w1, b1, w2, b2 = params
    level = kept[t][:, None]
    noisy = np.sqrt(level) * x + np.sqrt(1 - level) * noise
    a = np.concatenate([noisy, time_features(t)], axis=1) @ w1 + b1
    return (((a * sigmoid(a)) @ w2 + b2 - noise) ** 2).mean()


def _diffusion_derived(value_and_grad):
    def step(params, average, kept, x, t, noise, rate):
        loss, g = value_and_grad(diffusion_loss)(params, kept, x, t, noise)
        params = [w - rate * d for w, d in zip(params, g, strict=True)]
        return loss, params, [0.999 * a + 0.001 * w for a, w in zip(average, params, strict=True)]

    return step


@program("learning", _diffusion, 6, 100, numba=False, derived=_diffusion_derived)
def diffusion_step(params, average, kept, x, t, noise, rate):
    w1, b1, w2, b2 = params
    level = kept[t][:, None]
    noisy = np.sqrt(level) * x + np.sqrt(1 - level) * noise
    inputs = np.concatenate([noisy, time_features(t)], axis=1)
    a = inputs @ w1 + b1
    s = sigmoid(a)
    h = a * s
    miss = h @ w2 + b2 - noise
    loss = (miss**2).mean()
    d_out = 2 * miss / miss.size
    d_a = d_out @ w2.T * (s + h * (1 - s))
    g = [inputs.T @ d_a, d_a.sum(axis=0), h.T @ d_out, d_out.sum(axis=0)]
    params = [w - rate * d for w, d in zip(params, g, strict=True)]
    return loss, params, [0.999 * a + 0.001 * w for a, w in zip(average, params, strict=True)]


@program(
    "learning", lambda rng, n: (np.zeros((n, n, 4)), rng.random((50 * n, 2)), 0.1, 0.5, 0.95), 6, 40
)
def q_learning(q, chance, explore, rate, discount):
    """A walk on a grid from one corner to the other, one random pair for each step."""
    q = q.copy()
    n = q.shape[0]
    row, column, total = 0, 0, 0.0
    for k in range(len(chance)):
        if chance[k, 0] < explore:
            action = int(chance[k, 1] * 4)
        else:
            action = np.argmax(q[row, column])
        r, c = row, column
        if action == 0:
            r = max(row - 1, 0)
        elif action == 1:
            r = min(row + 1, n - 1)
        elif action == 2:
            c = max(column - 1, 0)
        else:
            c = min(column + 1, n - 1)
        done = r == n - 1 and c == n - 1
        reward = 1.0 if done else -0.01
        best = 0.0 if done else q[r, c].max()
        q[row, column, action] += rate * (reward + discount * best - q[row, column, action])
        total += reward
        if done:
            row, column = 0, 0
        else:
            row, column = r, c
    return q, total


# --- embeddings in the plane, and particles of a posterior ----------------------------------------


def _tsne(rng, n):
    x = rng.normal(size=(n, 10)) + 4 * rng.integers(0, 2, (n, 1))
    d = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    p = np.exp(-d / 8)
    np.fill_diagonal(p, 0)
    p /= p.sum(axis=1, keepdims=True)
    return (p + p.T) / (2 * n), rng.normal(size=(n, 2)) * 1e-2, np.zeros((n, 2)), 0.8, 100.0


def tsne_loss(y, p):
    squares = (y**2).sum(axis=1)
    near = 1 / (1 + squares[:, None] + squares[None] - 2 * y @ y.T)
    near = near * (1 - np.eye(len(y)))
    q = np.maximum(near / near.sum(), 1e-12)
    return (p * np.log(np.maximum(p, 1e-12) / q)).sum()


def _tsne_derived(value_and_grad):
    def step(p, y, speed, momentum, rate):
        loss, g = value_and_grad(tsne_loss)(y, p)
        speed = momentum * speed - rate * g
        y = y + speed
        return loss, y - y.mean(axis=0), speed

    return step


@program("learning", _tsne, 10, 400, numba=False, derived=_tsne_derived)
def tsne_step(p, y, speed, momentum, rate):
    squares = (y**2).sum(axis=1)
    near = 1 / (1 + squares[:, None] + squares[None] - 2 * y @ y.T)
    near = near * (1 - np.eye(len(y)))
    q = np.maximum(near / near.sum(), 1e-12)
    loss = (p * np.log(np.maximum(p, 1e-12) / q)).sum()
    pull = (p - q) * near
    g = 4 * (pull.sum(axis=1)[:, None] * y - pull @ y)
    speed = momentum * speed - rate * g
    y = y + speed
    return loss, y - y.mean(axis=0), speed


def _svgd(rng, n):
    x = rng.normal(size=(2 * n, 8))
    y = (x @ rng.normal(size=8) > 0) * 1.0
    return rng.normal(size=(n, 8)), x, y, 0.05


@program("learning", _svgd, 8, 200, numba=False)
def svgd_step(theta, x, y, rate):
    """Stein variational gradient descent on a logistic regression."""
    score = (y - sigmoid(theta @ x.T)) @ x - theta
    apart = theta[:, None] - theta[None]
    squares = (apart**2).sum(axis=-1)
    width = np.median(squares) / np.log(len(theta) + 1)
    kernel = np.exp(-squares / width)
    repel = 2 / width * (kernel[:, :, None] * apart).sum(axis=1)
    return theta + rate * (kernel @ score + repel) / len(theta)
