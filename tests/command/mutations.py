"""Mutated files of profiles: what the fuzzer of ``test_mutations`` feeds to the command.

Two kinds: texts of which bytes were changed, which mostly are no JSON any more, and plain data of
which values were changed, which mostly still are profiles. Equal seeds give equal files.
"""

import copy
import json
import random

#: numbers that reach the ends of types, of floats, and of what is divided by
NUMBERS = (
    0, -1, 1, 2, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**400, 0.5, -0.0, 1e308, -1e308,
    5e-324,
)  # fmt: skip
TEXTS = (
    "", "\x1b[31mred\x1b]0;title\x07", "=1+1", "a\nb", "\u202egnp.exe", "\ud800", "x" * 5000, "%d",
    "[bold]{x}", "../../..", "__proto__", "float64", "2026-01-01", "\0", "nan", "|`*_<b>",
)  # fmt: skip
OTHERS = (None, True, False, [], {}, [[]], [None], {"": 0}, [1, [2, [3]]])


def mutated(texts, seed):
    """Return the bytes of a file made of one of some profiles' JSON texts."""
    rng = random.Random(seed)
    text = rng.choice(texts)
    if rng.random() < 0.15:
        return _of_bytes(text.encode(), rng)
    data = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        data = _of_data(data, rng)
    return json.dumps(data).encode()


def _of_bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 20))):
        at = rng.randrange(len(data))
        how = rng.randrange(4)
        if how == 0:
            data[at] = rng.randrange(256)
        elif how == 1:
            del data[at : at + rng.choice((1, 1, 50, 5000))]
        elif how == 2:
            data[at:at] = rng.choice((b"[", b"{", b'"', b"9" * 500, b"\xff\xfe", b"[" * 100_000))
        else:
            data[at:at] = data[at : at + rng.choice((1, 30, 400))]
        if not data:
            break
    return bytes(data)


def _of_data(data, rng):
    """Change one value somewhere in plain data, which may be all of it."""
    data = copy.deepcopy(data)
    places = list(_places(data))
    if not places or rng.random() < 0.01:
        return _another(data, rng)
    # so that long lists of one kind do not hide what there is once
    names = sorted({name for _, _, name in places})
    name = rng.choice(names)
    holder, key, _ = rng.choice([place for place in places if place[2] == name])
    how = rng.random()
    if how < 0.7:
        holder[key] = _another(holder[key], rng)
    elif how < 0.8:
        del holder[key]
    elif how < 0.9 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        other, at, _ = rng.choice(places)
        holder[key] = copy.deepcopy(other[at])
    return data


def _places(data, name=""):
    """Yield (list or dict, key, name of what it is) of every value in plain data."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield data, key, f"{name}.{key}" if name != ".sources" else ".sources"
            yield from _places(value, f"{name}.{key}")
    elif isinstance(data, list):
        for k, value in enumerate(data):
            yield data, k, f"{name}[]"
            yield from _places(value, f"{name}[]")


def _another(value, rng):
    """Return a value beside one: mostly of its kind, so that it passes the schema."""
    if rng.random() < 0.15:
        return rng.choice((*OTHERS, *NUMBERS, *TEXTS))
    if isinstance(value, bool) or value is None:
        return rng.choice((True, False, None))
    if isinstance(value, int | float):
        return rng.choice((*NUMBERS, value + 1, value * 1000))
    if isinstance(value, str):
        return rng.choice((*TEXTS, value * 2, value[:-1]))
    if isinstance(value, list):
        return rng.choice(([], value * 2, value[:-1], value[::-1]))
    return rng.choice(({}, {**value, "more": 1}))
