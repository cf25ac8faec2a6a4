"""Pictures that scripts learn from: digits, textures and films, drawn by the numbers of a seed."""
from __future__ import print_function

import numpy as np

# 5 x 7 pixels a digit, a row of pixels after the other
FONT = """
.###. #...# #..## #.#.# ##..# #...# .###.
..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.
.###. #...# ....# ...#. ..#.. .#... #####
##### ...#. ..#.. ...#. ....# #...# .###.
...#. ..##. .#.#. #..#. ##### ...#. ...#.
##### #.... ####. ....# ....# #...# .###.
..##. .#... #.... ####. #...# #...# .###.
##### ....# ...#. ..#.. .#... .#... .#...
.###. #...# #...# .###. #...# #...# .###.
.###. #...# #...# .#### ....# ...#. .##..
"""
GLYPHS = np.array([[[c == '#' for c in row] for row in line.split()]
                   for line in FONT.strip().splitlines()], dtype='float64')


def digits(n, rng, side=16, scale=2, noise=0.2, n_classes=10, shift=None):
    """n images of side x side with a digit somewhere, and which digits they are."""
    labels = rng.randint(0, n_classes, n).astype('int32')
    glyphs = GLYPHS.repeat(scale, axis=1).repeat(scale, axis=2)
    height, width = glyphs.shape[1:]
    images = noise * rng.randn(n, side, side)
    for image, label in zip(images, labels):
        free = side - height, side - width
        row, column = [rng.randint(f + 1) if shift is None else
                       f // 2 + rng.randint(-shift, shift + 1) for f in free]
        image[row:row + height, column:column + width] += rng.uniform(0.7, 1.3) * glyphs[label]
    return images, labels


def stripes(n, rng, side=12, n_classes=4, noise=0.5):
    """n images with waves that run in one of several directions, and which."""
    labels = rng.randint(0, n_classes, n).astype('int32')
    rows, columns = np.mgrid[:side, :side]
    angles = np.pi * labels / n_classes
    phases = rng.uniform(0, 2 * np.pi, n)
    images = [np.sin(1.6 * (np.cos(a) * rows + np.sin(a) * columns) + p)
              for a, p in zip(angles, phases)]
    return np.array(images) + noise * rng.randn(n, side, side), labels


def films(n, rng, frames=6, side=8, noise=0.1):
    """n films of a spot that moves up, down, left or right, and which."""
    labels = rng.randint(0, 4, n).astype('int32')
    steps = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])
    data = noise * rng.randn(n, frames, side, side)
    for film, label in zip(data, labels):
        place = rng.randint(0, side, 2)
        for frame in film:
            frame[tuple(place)] += 1
            place = (place + steps[label]) % side
    return data, labels


def blobs(n, rng, side=12):
    """n noisy images with squares and discs, and 1 in the pixels of discs, 0 elsewhere."""
    rows, columns = np.mgrid[:side, :side]
    images, masks = 0.2 * rng.randn(n, side, side), np.zeros((n, side, side), 'int32')
    for image, mask in zip(images, masks):
        for is_disc in (True, False):
            row, column = rng.randint(3, side - 3, 2)
            if is_disc:
                shape = (rows - row) ** 2 + (columns - column) ** 2 <= 8
                mask[shape] = 1
            else:
                shape = (abs(rows - row) == 2) & (abs(columns - column) <= 2)
                shape |= (abs(columns - column) == 2) & (abs(rows - row) <= 2)
                mask[shape] = 0
            image[shape] = image[shape] * 0.5 + 1
    return images, masks
