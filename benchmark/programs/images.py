"""Images and signals: filters, motion, poses, and reconstructions."""

from __future__ import annotations

import numpy as np

from benchmark.numpy_programs.program import Programs

PROGRAMS = Programs()
program = PROGRAMS.program


def _image(rng, n):
    y, x = np.mgrid[:n, :n] / n
    return np.sin(7 * x) * np.cos(5 * y) + 0.1 * rng.normal(size=(n, n))


@program("filters", lambda rng, n: (_image(rng, n), 3, 2.0, 0.2), 12, 150)
def bilateral(image, radius, near, alike):
    rows, columns = image.shape
    padded = np.zeros((rows + 2 * radius, columns + 2 * radius))
    padded[radius : radius + rows, radius : radius + columns] = image
    total, weights = np.zeros_like(image), np.zeros_like(image)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            other = padded[radius + dy : radius + dy + rows, radius + dx : radius + dx + columns]
            w = np.exp(-(dx * dx + dy * dy) / (2 * near**2) - (other - image) ** 2 / (2 * alike**2))
            total += w * other
            weights += w
    return total / weights


@program("filters", lambda rng, n: (_image(rng, n), 5), 12, 150, numba=False)
def median_filter(image, width):
    padded = np.pad(image, width // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (width, width))
    return np.median(windows, axis=(-2, -1))


def _blurred(rng, n):
    x = np.minimum(np.arange(n), n - np.arange(n)) / 3.0
    blur = np.exp(-0.5 * (x[:, None] ** 2 + x[None] ** 2))
    return _image(rng, n), blur / blur.sum(), 0.01


@program("filters", _blurred, 16, 256, numba=False)
def wiener(image, blur, noise):
    """Blur an image, and sharpen it again by Wiener's filter."""
    transfer = np.fft.rfft2(blur)
    seen = np.fft.irfft2(np.fft.rfft2(image) * transfer, s=image.shape)
    gain = np.conj(transfer) / (np.abs(transfer) ** 2 + noise)
    sharp = np.fft.irfft2(np.fft.rfft2(seen) * gain, s=image.shape)
    error = ((sharp - image) ** 2).mean()
    return sharp, 10 * np.log10(np.ptp(image) ** 2 / error)


def box(x, width):
    """The sums of windows, by cumulative sums."""
    c = np.cumsum(np.cumsum(np.pad(x, ((1, 0), (1, 0))), axis=0), axis=1)
    return c[width:, width:] - c[:-width, width:] - c[width:, :-width] + c[:-width, :-width]


def _frames(rng, n):
    first = _image(rng, n)
    return first, np.roll(first, (1, 0), (0, 1)) + 0.01 * rng.normal(size=(n, n)), 9


@program("motion", _frames, 16, 250, numba=False)
def lucas_kanade(first, second, width):
    """The optical flow of windows by least squares, where it is well determined."""
    dy, dx = np.gradient(0.5 * (first + second))
    dt = second - first
    xx, xy, yy = box(dx * dx, width), box(dx * dy, width), box(dy * dy, width)
    xt, yt = box(dx * dt, width), box(dy * dt, width)
    det = xx * yy - xy**2
    least = 0.5 * (xx + yy - np.sqrt((xx - yy) ** 2 + 4 * xy**2))
    good = least > 1e-3
    safe = np.where(good, det, 1.0)
    u = np.where(good, (xy * yt - yy * xt) / safe, 0.0)
    v = np.where(good, (xy * xt - xx * yt) / safe, 0.0)
    return u, v, good.mean()


def _camera(rng, n):
    points = rng.normal(size=(n, 3)) + np.array([0.0, 0.0, 8.0])
    pose = np.array([0.1, -0.2, 0.05, 0.1, 0.2, -0.1])
    seen = projected(pose, points, 500.0) + rng.normal(size=(n, 2))
    return np.zeros(6), points, seen, 500.0, 5


def skew(w):
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def rotation(w):
    angle = np.sqrt(w @ w + 1e-12)
    k = skew(w / angle)
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * (k @ k)


def projected(pose, points, focal):
    p = points @ rotation(pose[:3]).T + pose[3:]
    return focal * p[:, :2] / p[:, 2:]


@program("motion", _camera, 12, 3000, numba=False)
def bundle_step(pose, points, seen, focal, steps):
    """The pose of a camera from points and pixels: Gauss-Newton with Huber's weights."""
    for _ in range(steps):
        p = points @ rotation(pose[:3]).T
        q = p + pose[3:]
        x, y, z = q.T
        miss = focal * q[:, :2] / z[:, None] - seen
        zero = np.zeros_like(z)
        by_q = np.stack(
            [
                np.stack([focal / z, zero, -focal * x / z**2], axis=-1),
                np.stack([zero, focal / z, -focal * y / z**2], axis=-1),
            ],
            axis=1,
        )
        turn = np.zeros((len(p), 3, 3))
        turn[:, 0, 1], turn[:, 0, 2], turn[:, 1, 2] = p[:, 2], -p[:, 1], p[:, 0]
        turn -= turn.transpose(0, 2, 1)
        jacobian = np.concatenate([by_q @ turn, by_q], axis=2)
        size = np.sqrt((miss**2).sum(axis=1))
        weight = np.where(size > 2.0, 2.0 / np.maximum(size, 1e-9), 1.0)
        h = np.einsum("n,nki,nkj->ij", weight, jacobian, jacobian)
        g = np.einsum("n,nki,nk->i", weight, jacobian, miss)
        pose = pose - np.linalg.solve(h + 1e-9 * np.eye(6), g)
    return pose, (weight * size**2).mean()


def _sinogram(rng, n):
    angles = np.linspace(0, np.pi, n // 2, endpoint=False)
    return rng.random((n // 2, n)), angles


@program("reconstructions", _sinogram, 12, 120, numba=False)
def backprojection(sinogram, angles):
    """Tomography: ramp-filtered projections, smeared back over the image."""
    n = sinogram.shape[1]
    ramp = np.abs(np.fft.fftfreq(n))
    filtered = np.real(np.fft.ifft(np.fft.fft(sinogram, axis=1) * ramp, axis=1))
    grid = np.arange(n) - (n - 1) / 2
    x, y = np.meshgrid(grid, grid)
    image = np.zeros((n, n))
    for k, angle in enumerate(angles):
        t = x * np.cos(angle) + y * np.sin(angle)
        image += np.interp(t, grid, filtered[k], left=0.0, right=0.0)
    return image * np.pi / len(angles)
