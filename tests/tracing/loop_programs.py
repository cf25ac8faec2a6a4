"""Programs over single elements of arrays, by loops, as people write them for compilers of numpy.

PROGRAMS: {name: (a function, lists of its arguments)}.
"""

import math

import numpy as np

PROGRAMS = {}


def given(*cases):
    """Register a program with lists of arguments."""

    def register(function):
        PROGRAMS[function.__name__] = function, cases
        return function

    return register


def rng(seed=0):
    return np.random.default_rng(seed)


def ints(n, low=0, high=20, seed=0):
    return rng(seed).integers(low, high, n)


def floats(*shape, seed=0):
    return rng(seed).normal(size=shape)


# --- numbers --------------------------------------------------------------------------------------


@given([0], [1], [2], [30], [31], [100])
def sieve(n):
    prime = np.ones(n + 1, dtype=np.bool_)
    prime[:2] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
        i += 1
    count = 0
    for i in range(n + 1):
        if prime[i]:
            count += 1
    return prime, count


@given([2], [10], [50], [121])
def sieve_of_ranges(n):
    flags = np.ones(n, np.uint8)
    for i in range(2, n):
        if flags[i] == 1:
            for j in range(i * i, n, i):
                flags[j] = 0
    return flags


@given([1], [27], [97], [6])
def longest_collatz(n):
    best, length = 1, 1
    for start in range(1, n + 1):
        k, steps = start, 1
        while k != 1:
            if k % 2 == 0:
                k //= 2
            else:
                k = 3 * k + 1
            steps += 1
        if steps > length:
            best, length = start, steps
    return best, length


@given([12, 18], [0, 5], [7, 0], [270, 192])
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@given([ints(10, 1, 100), ints(10, 1, 100, 1)], [ints(0), ints(0)], [ints(1, 1), ints(1, 1)])
def gcds(a, b):
    out = np.empty(len(a), np.int64)
    for k in range(len(a)):
        x, y = a[k], b[k]
        while y != 0:
            x, y = y, x % y
        out[k] = x
    return out


@given([360, 20], [97, 20], [1, 5], [2, 5], [9409, 8])
def factorise(n, most):
    factors = np.zeros(most, dtype=np.int64)
    count = 0
    p = 2
    while p * p <= n:
        while n % p == 0:
            factors[count] = p
            count += 1
            n //= p
        p += 1
    if n > 1:
        factors[count] = n
        count += 1
    return factors[:count].sum(), count


@given([0], [1], [2], [91], [97], [25])
def is_prime(n):
    if n < 2:
        return False
    if n < 4:
        return True
    if n % 2 == 0 or n % 3 == 0:
        return False
    i = 5
    while i * i <= n:
        if n % i == 0 or n % (i + 2) == 0:
            return False
        i += 6
    return True


@given([3, 200, 13], [2, 10, 1000], [5, 0, 7])
def power_mod(base, exponent, modulus):
    result = 1
    base %= modulus
    while exponent > 0:
        if exponent & 1:
            result = result * base % modulus
        exponent >>= 1
        base = base * base % modulus
    return result


@given([-17, 5], [17, -5], [-17, -5], [17, 5])
def signs(a, b):
    q, r = 0, 0
    for k in range(20):
        x = a + k
        q += x // b
        r = r * 3 + x % b
    return q, r, a // b, a % b


@given([0], [1], [10], [40])
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@given([1], [6], [28], [12])
def perfect(n):
    total = 0
    for d in range(1, n // 2 + 1):
        if n % d == 0:
            total += d
    return total == n


@given([np.frombuffer(b"hello world", np.uint8)], [np.zeros(0, np.uint8)])
def crc32(data):
    crc = np.uint32(0xFFFFFFFF)
    for byte in data:
        crc ^= np.uint32(byte)
        for _ in range(8):
            if crc & np.uint32(1):
                crc = (crc >> np.uint32(1)) ^ np.uint32(0xEDB88320)
            else:
                crc >>= np.uint32(1)
    return crc ^ np.uint32(0xFFFFFFFF)


@given([ints(9, 0, 1000)], [ints(0)], [ints(1, 5, 9)])
def popcounts(x):
    total = 0
    for i in range(x.size):
        v = x[i]
        while v:
            v &= v - 1
            total += 1
    return total


@given([10, 1.5], [0, 2.0], [25, 0.3])
def exponential(n, x):
    term, total = 1.0, 1.0
    for k in range(1, n + 1):
        term *= x / k
        total += term
        if abs(term) < 1e-12:
            break
    return total


@given([2.0, 1e-9], [100.0, 1e-12], [0.5, 1e-9])
def newton_root(a, tolerance):
    x = a
    for iteration in range(100):
        new = 0.5 * (x + a / x)
        if abs(new - x) < tolerance:
            return new, iteration
        x = new
    return x, -1


@given([0.0, 3.0, 1e-9], [1.0, 2.0, 1e-6])
def bisection(low, high, tolerance):
    while high - low > tolerance:
        middle = (low + high) / 2
        if middle * middle - 2 > 0:
            high = middle
        else:
            low = middle
    return low


# --- sorting and searching ------------------------------------------------------------------------


SORTED = (
    [ints(12)],
    [ints(0)],
    [ints(1)],
    [ints(2)],
    [floats(17)],
    [np.arange(10)],
    [np.arange(9.0)[::-1].copy()],
)


@given(*SORTED)
def bubble_sort(x):
    n = len(x)
    for i in range(n):
        swapped = False
        for j in range(0, n - i - 1):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                swapped = True
        if not swapped:
            break
    return x


@given(*SORTED)
def bubble_sort_by_copy(a):
    x = a.copy()
    n = x.shape[0]
    for i in range(n - 1):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                t = x[j]
                x[j] = x[j + 1]
                x[j + 1] = t
    return x


@given(*SORTED)
def insertion_sort(x):
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


@given(*SORTED)
def selection_sort(x):
    n = len(x)
    for i in range(n):
        least = i
        for j in range(i + 1, n):
            if x[j] < x[least]:
                least = j
        x[i], x[least] = x[least], x[i]
    return x


@given(*SORTED)
def merge_sort(x):
    n = len(x)
    a, b = x.copy(), x.copy()
    width = 1
    while width < n:
        for left in range(0, n, 2 * width):
            middle = min(left + width, n)
            right = min(left + 2 * width, n)
            i, j = left, middle
            for k in range(left, right):
                if i < middle and (j >= right or a[i] <= a[j]):
                    b[k] = a[i]
                    i += 1
                else:
                    b[k] = a[j]
                    j += 1
        for k in range(n):
            a[k] = b[k]
        width *= 2
    return a


@given(*SORTED)
def heap_sort(x):
    n = len(x)
    for start in range(n // 2 - 1, -1, -1):
        root = start
        while True:
            child = 2 * root + 1
            if child >= n:
                break
            if child + 1 < n and x[child] < x[child + 1]:
                child += 1
            if x[root] < x[child]:
                x[root], x[child] = x[child], x[root]
                root = child
            else:
                break
    for end in range(n - 1, 0, -1):
        x[0], x[end] = x[end], x[0]
        root = 0
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and x[child] < x[child + 1]:
                child += 1
            if x[root] >= x[child]:
                break
            x[root], x[child] = x[child], x[root]
            root = child
    return x


@given(*SORTED)
def shell_sort(x):
    n = len(x)
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            t = x[i]
            j = i
            while j >= gap and x[j - gap] > t:
                x[j] = x[j - gap]
                j -= gap
            x[j] = t
        gap //= 2
    return x


@given(*SORTED)
def quick_sort(x):
    n = len(x)
    stack = np.zeros((n + 2, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n - 1
    top = 1
    while top > 0:
        top -= 1
        low, high = stack[top, 0], stack[top, 1]
        if low >= high:
            continue
        pivot = x[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        if low < j:
            stack[top, 0] = low
            stack[top, 1] = j
            top += 1
        if i < high:
            stack[top, 0] = i
            stack[top, 1] = high
            top += 1
    return x


@given([ints(30), 20], [ints(0), 3], [ints(1, 0, 1), 1])
def counting_sort(x, m):
    counts = np.zeros(m, dtype=np.int64)
    for v in x:
        counts[v] += 1
    out = np.empty_like(x)
    k = 0
    for v in range(m):
        for _ in range(counts[v]):
            out[k] = v
            k += 1
    return out


@given(
    [np.arange(0, 40, 3), 12],
    [np.arange(0, 40, 3), 13],
    [np.arange(0), 1],
    [np.arange(1.0), 0.0],
    [np.arange(9.0), 8.0],
)
def binary_search(x, wanted):
    low, high = 0, len(x) - 1
    while low <= high:
        middle = (low + high) // 2
        if x[middle] == wanted:
            return middle
        if x[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


@given([np.sort(floats(20)), floats(9, seed=1)], [floats(0), floats(3)], [floats(1), floats(1)])
def bisect_all(a, v):
    out = np.zeros(v.shape[0], dtype=np.int64)
    for k in range(v.shape[0]):
        low, high = 0, a.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if a[middle] < v[k]:
                low = middle + 1
            else:
                high = middle
        out[k] = low
    return out


@given([ints(20), 7], [ints(1), 0], [floats(11), 5])
def quick_select(x, k):
    a = x.copy()
    low, high = 0, len(a) - 1
    while low < high:
        pivot = a[high]
        store = low
        for i in range(low, high):
            if a[i] < pivot:
                a[i], a[store] = a[store], a[i]
                store += 1
        a[store], a[high] = a[high], a[store]
        if store == k:
            break
        if store < k:
            low = store + 1
        else:
            high = store - 1
    return a[k]


@given([np.sort(ints(20)), 17], [np.sort(ints(20)), 1000], [ints(0), 3], [ints(1), 3])
def two_sum(x, target):
    i, j = 0, len(x) - 1
    while i < j:
        s = x[i] + x[j]
        if s == target:
            return i, j
        elif s < target:
            i += 1
        else:
            j -= 1
    return -1, -1


@given([ints(15, 0, 9), 12], [ints(15, 0, 9), 500], [ints(0), 3])
def pair_of_sum(x, target):
    n = len(x)
    for i in range(n):
        for j in range(i + 1, n):
            if x[i] + x[j] == target:
                return i, j
    return -1, -1


@given([ints(10)], [ints(1)], [floats(6)], [ints(0)], [floats(2)])
def reverse(x):
    i, j = 0, len(x) - 1
    while i < j:
        x[i], x[j] = x[j], x[i]
        i += 1
        j -= 1


@given([np.sort(ints(20))], [ints(0)], [ints(1)], [np.zeros(5)])
def unique(x):
    n = len(x)
    if n == 0:
        return 0
    k = 1
    for i in range(1, n):
        if x[i] != x[k - 1]:
            x[k] = x[i]
            k += 1
    return k


@given([ints(9, 0, 5)], [ints(0)], [ints(1)], [floats(6)], [ints(10, 0, 2)])
def next_greater(x):
    n = len(x)
    out = np.full(n, -1)
    stack = np.empty(n, np.int64)
    top = -1
    for i in range(n):
        while top >= 0 and x[stack[top]] < x[i]:
            out[stack[top]] = i
            top -= 1
        top += 1
        stack[top] = i
    return out


# --- dynamic programming --------------------------------------------------------------------------


WORDS = (
    [ints(8, 0, 4), ints(6, 0, 4, 1)],
    [ints(0), ints(3)],
    [ints(1), ints(0)],
    [ints(12, 0, 3), ints(12, 0, 3, 5)],
)


@given(*WORDS)
def edit_distance(a, b):
    m, n = len(a), len(b)
    d = np.zeros((m + 1, n + 1), dtype=np.int64)
    for i in range(m + 1):
        d[i, 0] = i
    for j in range(n + 1):
        d[0, j] = j
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[m, n]


@given(*WORDS)
def edit_distance_by_rows(a, b):
    previous = np.arange(len(b) + 1)
    current = np.zeros(len(b) + 1, np.int64)
    for i in range(len(a)):
        current[0] = i + 1
        for j in range(len(b)):
            if a[i] == b[j]:
                current[j + 1] = previous[j]
            else:
                current[j + 1] = 1 + min(previous[j], previous[j + 1], current[j])
        previous, current = current, previous
    return previous[len(b)]


@given(*WORDS)
def longest_common(a, b):
    m, n = len(a), len(b)
    t = np.zeros((m + 1, n + 1), np.int32)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            if a[i - 1] == b[j - 1]:
                t[i, j] = t[i - 1, j - 1] + 1
            elif t[i - 1, j] >= t[i, j - 1]:
                t[i, j] = t[i - 1, j]
            else:
                t[i, j] = t[i, j - 1]
    return t


@given(*WORDS)
def needleman_wunsch(a, b):
    m, n = len(a), len(b)
    score = np.zeros((m + 1, n + 1))
    for i in range(1, m + 1):
        score[i][0] = -2.0 * i
    for j in range(1, n + 1):
        score[0][j] = -2.0 * j
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            match = score[i - 1, j - 1] + (1.0 if a[i - 1] == b[j - 1] else -1.0)
            best = match
            if score[i - 1, j] - 2 > best:
                best = score[i - 1, j] - 2
            if score[i, j - 1] - 2 > best:
                best = score[i, j - 1] - 2
            score[i, j] = best
    # the way back
    i, j = m, n
    gaps = 0
    while i > 0 and j > 0:
        here = score[i, j]
        if here == score[i - 1, j - 1] + (1.0 if a[i - 1] == b[j - 1] else -1.0):
            i -= 1
            j -= 1
        elif here == score[i - 1, j] - 2:
            i -= 1
            gaps += 1
        else:
            j -= 1
            gaps += 1
    return score[m, n], gaps + i + j


@given([ints(6, 1, 9), ints(6, 1, 30, 1), 15], [ints(0), ints(0), 4], [ints(1, 1), ints(1, 1), 0])
def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for i in range(len(weights)):
        for c in range(capacity, weights[i] - 1, -1):
            best[c] = max(best[c], best[c - weights[i]] + values[i])
    return best[capacity]


@given([ints(6, 1, 9), ints(6, 1, 30, 1), 15], [ints(0), ints(0), 4])
def knapsack_table(w, v, capacity):
    n = w.shape[0]
    t = np.zeros((n + 1, capacity + 1))
    for i in range(1, n + 1):
        for c in range(capacity + 1):
            t[i, c] = t[i - 1, c]
            if w[i - 1] <= c and t[i - 1, c - w[i - 1]] + v[i - 1] > t[i, c]:
                t[i, c] = t[i - 1, c - w[i - 1]] + v[i - 1]
    return t[n, capacity]


@given([np.array([1, 2, 5]), 11], [np.array([2]), 3], [np.array([7, 3, 4, 9]), 0])
def coins(values, amount):
    ways = np.zeros(amount + 1, dtype=np.int64)
    ways[0] = 1
    for coin in values:
        for a in range(coin, amount + 1):
            ways[a] += ways[a - coin]
    return ways[amount]


@given([ints(6, 2, 30)], [ints(2, 2, 9)], [ints(3, 2, 9)], [ints(12, 1, 9)])
def matrix_chain(p):
    n = len(p) - 1
    m = np.zeros((n, n), np.int64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i, j] = 2**40
            for k in range(i, j):
                q = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                if q < m[i, j]:
                    m[i, j] = q
    return m[0, n - 1]


@given([floats(10)], [floats(1)], [ints(12, -5, 5)], [-np.ones(4)])
def kadane(x):
    best = current = x[0]
    for i in range(1, len(x)):
        current = max(x[i], current + x[i])
        best = max(best, current)
    return best


@given([ints(14)], [ints(0)], [ints(1)], [floats(9)])
def longest_increasing(x):
    n = x.shape[0]
    length = np.ones(n, dtype=np.int64)
    best = 0
    for i in range(n):
        for j in range(i):
            if x[j] < x[i] and length[j] + 1 > length[i]:
                length[i] = length[j] + 1
        if length[i] > best:
            best = length[i]
    return best


@given([floats(9), floats(7, seed=1)], [floats(1), floats(1)], [floats(12), floats(12, seed=3)])
def dtw(a, b):
    n, m = len(a), len(b)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d = abs(a[i - 1] - b[j - 1])
            cost[i, j] = d + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[n, m]


@given([floats(20), floats(20, seed=1), 3], [floats(9), floats(9, seed=2), 1])
def dtw_in_band(a, b, width):
    n, m = len(a), len(b)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(max(1, i - width), min(m, i + width) + 1):
            d = (a[i - 1] - b[j - 1]) ** 2
            cost[i, j] = d + min(cost[i - 1, j], min(cost[i, j - 1], cost[i - 1, j - 1]))
    return math.sqrt(cost[n, m])


@given(
    [np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]]),
     np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]), ints(12, 0, 3)],
)  # fmt: skip
def viterbi(start, transition, emission, seen):
    n, s = len(seen), len(start)
    score = np.zeros((n, s))
    back = np.zeros((n, s), dtype=np.int64)
    for k in range(s):
        score[0, k] = np.log(start[k]) + np.log(emission[k, seen[0]])
    for t in range(1, n):
        for k in range(s):
            best, arg = -np.inf, 0
            for q in range(s):
                value = score[t - 1, q] + np.log(transition[q, k])
                if value > best:
                    best, arg = value, q
            score[t, k] = best + np.log(emission[k, seen[t]])
            back[t, k] = arg
    path = np.zeros(n, dtype=np.int64)
    path[n - 1] = np.argmax(score[n - 1])
    for t in range(n - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path


# --- graphs ---------------------------------------------------------------------------------------


@given([np.abs(floats(9, 9))], [np.abs(floats(1, 1))], [np.abs(floats(0, 0))], [ints((6, 6))])
def floyd_warshall(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


@given([10, ints((7, 2), 0, 10)], [3, ints((0, 2))], [1, ints((1, 2), 0, 1)])
def union_find(n, edges):
    parent = np.arange(n)
    count = n
    for e in range(edges.shape[0]):
        a, b = edges[e, 0], edges[e, 1]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[a] = b
            count -= 1
    return count, parent


@given([ints((8, 8), 1, 30), 0], [ints((1, 1), 1), 0], [ints((5, 5), 1, 9), 3])
def dijkstra(w, source):
    n = w.shape[0]
    distance = np.full(n, np.inf)
    done = np.zeros(n, dtype=np.bool_)
    distance[source] = 0
    for _ in range(n):
        u = -1
        for v in range(n):
            if not done[v] and (u == -1 or distance[v] < distance[u]):
                u = v
        if u == -1 or distance[u] == np.inf:
            break
        done[u] = True
        for v in range(n):
            if w[u, v] > 0 and distance[u] + w[u, v] < distance[v]:
                distance[v] = distance[u] + w[u, v]
    return distance


@given([5, ints((9, 2), 0, 5), np.abs(floats(9)), 0], [1, ints((0, 2)), floats(0), 0])
def bellman_ford(n, edges, weights, source):
    d = np.full(n, 1e30)
    d[source] = 0.0
    for _ in range(n - 1):
        changed = False
        for e in range(len(edges)):
            u, v = edges[e]
            if d[u] + weights[e] < d[v]:
                d[v] = d[u] + weights[e]
                changed = True
        if not changed:
            break
    return d


@given([ints((8, 8), 0, 2), 0, 0], [ints((1, 1), 0, 1), 0, 0], [ints((12, 5), 0, 3), 3, 2])
def flood_fill(grid, y, x):
    h, w = grid.shape
    old, new = grid[y, x], 9
    stack = np.empty((4 * h * w + 4, 2), dtype=np.int64)
    stack[0] = y, x
    top = 1
    filled = 0
    while top > 0:
        top -= 1
        i, j = stack[top]
        if i < 0 or i >= h or j < 0 or j >= w:
            continue
        if grid[i, j] != old:
            continue
        grid[i, j] = new
        filled += 1
        stack[top] = i + 1, j
        stack[top + 1] = i - 1, j
        stack[top + 2] = i, j + 1
        stack[top + 3] = i, j - 1
        top += 4
    return filled


@given(
    [np.array([0, 2, 3, 5, 5]), np.array([1, 2, 3, 0, 3]), 0],
    [np.array([0, 0]), ints(0), 0],
)
def breadth_first(starts, targets, source):
    n = len(starts) - 1
    level = np.full(n, -1, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    queue[0] = source
    level[source] = 0
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for k in range(starts[u], starts[u + 1]):
            v = targets[k]
            if level[v] < 0:
                level[v] = level[u] + 1
                queue[tail] = v
                tail += 1
    return level


# --- linear algebra -------------------------------------------------------------------------------


def positive(n):
    a = floats(n, n)
    return a @ a.T + n * np.eye(n)


@given([positive(7)], [positive(1)], [positive(3)], [positive(0)])
def lu(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


@given([floats(6, 6)], [floats(1, 1)], [floats(10, 10)])
def lu_with_pivots(a):
    n = len(a)
    pivots = np.arange(n)
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            for j in range(n):
                t = a[k, j]
                a[k, j] = a[p, j]
                a[p, j] = t
            pivots[k], pivots[p] = pivots[p], pivots[k]
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return pivots


@given([positive(7)], [positive(1)], [positive(10)], [positive(0)])
def cholesky(a):
    n = a.shape[0]
    low = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(j):
                s += low[i, k] * low[j, k]
            if i == j:
                low[i, j] = np.sqrt(a[i, i] - s)
            else:
                low[i, j] = (a[i, j] - s) / low[j, j]
    return low


@given([positive(7), floats(7), 20], [positive(1), floats(1), 3], [positive(12), floats(12), 0])
def gauss_seidel(a, b, iterations):
    n = len(b)
    x = np.zeros(n)
    for _ in range(iterations):
        for i in range(n):
            s = b[i]
            for j in range(n):
                if j != i:
                    s -= a[i, j] * x[j]
            x[i] = s / a[i, i]
    return x


@given([floats(8, 9), 1e-3], [floats(3, 3), 1e-3], [floats(12, 12), 1e-1])
def laplace(u, tolerance):
    n, m = u.shape
    error, count = 1.0, 0
    while error > tolerance and count < 100:
        error = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                old = u[i, j]
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
                error = max(error, abs(u[i, j] - old))
        count += 1
    return error, count


@given([np.tril(positive(7)), floats(7)], [positive(1), floats(1)], [positive(0), floats(0)])
def forward_substitution(low, b):
    x = np.empty_like(b)
    for i in range(len(b)):
        x[i] = b[i]
        for j in range(i):
            x[i] -= low[i, j] * x[j]
        x[i] /= low[i, i]
    return x


@given([floats(9), floats(9) + 5, floats(9), floats(9, seed=2)], [floats(1)] * 4)
def thomas(a, b, c, d):
    n = len(d)
    p, q = np.zeros(n), np.zeros(n)
    p[0], q[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * p[i - 1]
        p[i] = c[i] / m
        q[i] = (d[i] - a[i] * q[i - 1]) / m
    for i in range(n - 2, -1, -1):
        q[i] -= p[i] * q[i + 1]
    return q


@given([np.array([5.0, 2.0, 1.0, 0.5, 0.2]), 4], [np.array([2.0, 1.0]), 1])
def levinson(r, order):
    a = np.zeros(order + 1)
    a[0] = 1.0
    e = r[0]
    for i in range(1, order + 1):
        acc = 0.0
        for j in range(i):
            acc += a[j] * r[i - j]
        k = -acc / e
        half = i // 2
        for j in range(1, half + 1):
            t = a[j] + k * a[i - j]
            a[i - j] += k * a[j]
            a[j] = t
        a[i] = k
        e *= 1 - k * k
    return a, e


@given([floats(5, 4), floats(4, 3)], [floats(1, 1), floats(1, 1)], [floats(0, 2), floats(2, 9)])
def matmul(a, b):
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


CSR = [np.array([0, 2, 3, 3, 6]), np.array([0, 3, 1, 0, 1, 2]), floats(6), floats(4)]


@given(CSR, [np.array([0]), ints(0), floats(0), floats(0)], [np.array([0, 1]), ints(1, 0, 1),
       floats(1), floats(1)])  # fmt: skip
def csr_matvec(starts, columns, data, x):
    n = len(starts) - 1
    y = np.zeros(n)
    for i in range(n):
        s = 0.0
        for k in range(starts[i], starts[i + 1]):
            s += data[k] * x[columns[k]]
        y[i] = s
    return y


@given(CSR)
def csr_matvec_in_place(starts, columns, data, x):
    y = np.zeros(len(starts) - 1)
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            y[i] += data[k] * x[columns[k]]
    return y


@given(
    [5, ints(9, 0, 5), ints(9, 0, 5, 1), floats(9)],
    [2, ints(0), ints(0), floats(0)],
    [1, ints(1, 0, 1), ints(1, 0, 1), floats(1)],
)
def coo_to_csr(n, rows, columns, data):
    starts = np.zeros(n + 1, dtype=np.int64)
    for r in rows:
        starts[r + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    out_columns = np.empty_like(columns)
    out_data = np.empty_like(data)
    for k in range(len(rows)):
        r = rows[k]
        at = place[r]
        out_columns[at] = columns[k]
        out_data[at] = data[k]
        place[r] += 1
    return starts, out_columns, out_data


@given([positive(5), 1e-9, 50], [positive(1), 1e-9, 50])
def power_iteration(a, tolerance, most):
    n = a.shape[0]
    v = np.ones(n)
    value = 0.0
    for _ in range(most):
        w = np.zeros(n)
        for i in range(n):
            for j in range(n):
                w[i] += a[i, j] * v[j]
        norm = 0.0
        for i in range(n):
            norm += w[i] ** 2
        norm = math.sqrt(norm)
        for i in range(n):
            v[i] = w[i] / norm
        if abs(norm - value) < tolerance:
            break
        value = norm
    return norm


# --- sequences ------------------------------------------------------------------------------------


@given([floats(10)], [floats(0)], [ints(1)], [ints(9)])
def prefix_sums(x):
    out = np.empty(len(x) + 1, x.dtype)
    out[0] = 0
    for i in range(len(x)):
        out[i + 1] = out[i] + x[i]
    return out


@given([rng().uniform(size=50), 8, 0.0, 1.0], [floats(0), 3, 0.0, 1.0], [floats(40), 5, -1.0, 1.0])
def histogram(x, bins, low, high):
    counts = np.zeros(bins, dtype=np.int64)
    width = (high - low) / bins
    for v in x:
        if v < low or v > high:
            continue
        k = int((v - low) / width)
        if k == bins:
            k -= 1
        counts[k] += 1
    return counts


@given([ints(20, 0, 2)], [ints(1)], [ints(0)], [np.repeat(ints(5), 3)], [ints(9, 0, 2) > 0])
def run_lengths(x):
    n = len(x)
    values, counts = np.zeros_like(x), np.zeros(n, np.int64)
    if n == 0:
        return 0
    k = 0
    values[0] = x[0]
    counts[0] = 1
    for i in range(1, n):
        if x[i] == values[k]:
            counts[k] += 1
        else:
            k += 1
            values[k] = x[i]
            counts[k] = 1
    total = 0
    for i in range(k + 1):
        total += counts[i] * (i + 1)
    return k + 1, total


@given([floats(12), 3], [floats(5), 5], [floats(9), 1])
def moving_median(x, width):
    n = len(x)
    out = np.empty(n - width + 1)
    window = np.empty(width)
    for i in range(n - width + 1):
        for k in range(width):
            window[k] = x[i + k]
        for a in range(1, width):
            key = window[a]
            b = a - 1
            while b >= 0 and window[b] > key:
                window[b + 1] = window[b]
                b = b - 1
            window[b + 1] = key
        if width % 2 == 1:
            out[i] = window[width // 2]
        else:
            out[i] = (window[width // 2 - 1] + window[width // 2]) / 2
    return out


@given([floats(12), 3], [floats(3), 3], [ints(15), 4])
def moving_maximum(x, w):
    n = len(x)
    out = np.empty(n - w + 1, x.dtype)
    queue = np.empty(n, np.int64)
    head = tail = 0
    for i in range(n):
        while tail > head and x[queue[tail - 1]] <= x[i]:
            tail -= 1
        queue[tail] = i
        tail += 1
        if queue[head] <= i - w:
            head += 1
        if i >= w - 1:
            out[i - w + 1] = x[queue[head]]
    return out


@given([floats(20), 0.3], [floats(1), 0.5], [floats(0), 0.5])
def smoothed(x, alpha):
    out = np.zeros(len(x))
    state = 0.0
    for i, v in enumerate(x):
        state = v if i == 0 else alpha * v + (1 - alpha) * state
        out[i] = state
    return out


@given([floats(12), floats(3)], [floats(1), floats(1)], [floats(4), floats(9)])
def convolve(x, h):
    n, m = len(x), len(h)
    out = np.zeros(n + m - 1)
    for i in range(n + m - 1):
        low, high = max(0, i - m + 1), min(i, n - 1)
        for k in range(low, high + 1):
            out[i] += x[k] * h[i - k]
    return out


@given(
    [ints(30, 0, 3), ints(3, 0, 3)],
    [ints(2), ints(3)],
    [np.zeros(9, np.int64), np.zeros(2, np.int64)],
)
def find_pattern(text, pattern):
    n, m = len(text), len(pattern)
    found = 0
    for i in range(n - m + 1):
        for j in range(m):
            if text[i + j] != pattern[j]:
                break
        else:
            found += 1
    return found


@given([ints(30, 0, 2), ints(3, 0, 2)], [ints(5, 0, 2), ints(1, 0, 2)])
def knuth_morris_pratt(text, pattern):
    m = len(pattern)
    fail = np.zeros(m, np.int64)
    k = 0
    for i in range(1, m):
        while k > 0 and pattern[k] != pattern[i]:
            k = fail[k - 1]
        if pattern[k] == pattern[i]:
            k += 1
        fail[i] = k
    found = 0
    k = 0
    for i in range(len(text)):
        while k > 0 and pattern[k] != text[i]:
            k = fail[k - 1]
        if pattern[k] == text[i]:
            k += 1
        if k == m:
            found += 1
            k = fail[k - 1]
    return found


@given([ints(20, 0, 5)], [ints(1)], [ints(0)], [ints(9, 0, 2)])
def majority(x):
    count = 0
    candidate = -1
    for v in x:
        if count == 0:
            candidate = v
            count = 1
        elif v == candidate:
            count += 1
        else:
            count -= 1
    return candidate


@given([floats(9)], [floats(1)], [floats(0)], [np.array([1.0, np.nan, 3.0])])
def mean_and_variance(x):
    mean, m2, n = 0.0, 0.0, 0
    for v in x:
        if np.isnan(v):
            continue
        n += 1
        delta = v - mean
        mean += delta / n
        m2 += delta * (v - mean)
    if n < 2:
        return mean, 0.0
    return mean, m2 / (n - 1)


@given([100, ints(200)], [0, ints(4)], [3, ints(9)])
def random_walk(n, table):
    x = y = 0
    far = 0
    for step in range(n):
        d = table[step] % 4
        if d == 0:
            x += 1
        elif d == 1:
            x -= 1
        elif d == 2:
            y += 1
        else:
            y -= 1
        if x * x + y * y > far:
            far = x * x + y * y
    return x, y, far


@given([np.array([[0, 1], [3, 5], [4, 8], [9, 9]])], [np.array([[0, 1]])], [ints((0, 2))])
def merge_intervals(x):
    out = np.zeros_like(x)
    n = 0
    for i in range(x.shape[0]):
        if n > 0 and x[i, 0] <= out[n - 1, 1]:
            if x[i, 1] > out[n - 1, 1]:
                out[n - 1, 1] = x[i, 1]
        else:
            out[n, 0] = x[i, 0]
            out[n, 1] = x[i, 1]
            n += 1
    return out, n


# --- grids and pictures ---------------------------------------------------------------------------


@given([ints((9, 7), 0, 2)], [ints((1, 1), 0, 2)], [ints((3, 3), 0, 2).astype(np.uint8)])
def life(grid):
    h, w = grid.shape
    out = np.zeros_like(grid)
    for i in range(h):
        for j in range(w):
            n = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if di == 0 and dj == 0:
                        continue
                    n += grid[(i + di) % h, (j + dj) % w]
            if grid[i, j] == 1 and (n == 2 or n == 3):
                out[i, j] = 1
            elif grid[i, j] == 0:
                out[i, j] = n == 3
    return out


@given([ints((9, 7), 0, 2) > 0], [ints((4, 4), 0, 2) > 0], [np.ones((1, 3), bool)])
def life_in_borders(cells):
    h, w = cells.shape
    out = np.zeros((h, w), dtype=np.bool_)
    for y in range(h):
        for x in range(w):
            count = 0
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    if (dy != 0 or dx != 0) and 0 <= y + dy < h and 0 <= x + dx < w:
                        if cells[y + dy, x + dx]:
                            count += 1
            out[y, x] = count == 3 or (cells[y, x] and count == 2)
    return out


@given([30, 20, 110], [1, 3, 30], [12, 12, 90])
def automaton(width, steps, rule):
    grid = np.zeros((steps, width), np.uint8)
    grid[0, width // 2] = 1
    for t in range(1, steps):
        for i in range(width):
            left = grid[t - 1, i - 1] if i > 0 else 0
            right = grid[t - 1, i + 1] if i < width - 1 else 0
            pattern = (left << 2) | (grid[t - 1, i] << 1) | right
            grid[t, i] = (rule >> pattern) & 1
    return grid


@given([12, 10, 30], [1, 1, 5], [9, 9, 12])
def mandelbrot(h, w, most):
    out = np.zeros((h, w), dtype=np.int64)
    for i in range(h):
        for j in range(w):
            c = complex(-2 + 3 * j / w, -1.5 + 3 * i / h)
            z = 0j
            for k in range(most):
                z = z * z + c
                if z.real * z.real + z.imag * z.imag > 4.0:
                    out[i, j] = k
                    break
            else:
                out[i, j] = most
    return out


def escape(re, im, most):
    x = y = 0.0
    n = 0
    while x * x + y * y <= 4.0 and n < most:
        x, y = x * x - y * y + re, 2 * x * y + im
        n += 1
    return n


@given([np.linspace(-2, 1, 9), np.linspace(-1, 1, 7), 30], [np.zeros(1), np.zeros(1), 10])
def mandelbrot_by_helper(re, im, most):
    out = np.empty((len(im), len(re)), dtype=np.int32)
    for i in range(len(im)):
        for j in range(len(re)):
            out[i, j] = escape(re[j], im[i], most)
    return out


@given([8, 9], [1, 1], [9, 12])
def ray_march(h, w):
    out = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            dx, dy, dz = (j - w / 2) / w, (i - h / 2) / h, 1.0
            norm = math.sqrt(dx * dx + dy * dy + dz * dz)
            dx, dy, dz = dx / norm, dy / norm, dz / norm
            t = 0.0
            hit = False
            for _ in range(64):
                x, y, z = t * dx, t * dy, t * dz - 3.0
                d = math.sqrt(x * x + y * y + z * z) - 1.0
                if d < 1e-3:
                    hit = True
                    break
                t += d
                if t > 20.0:
                    break
            out[i, j] = t if hit else -1.0
    return out


@given(
    [ints((9, 9), 0, 2) * 2 - 1, rng(1).uniform(size=(40, 3)), 0.4],
    [np.ones((1, 1), np.int64), rng(1).uniform(size=(4, 3)), 0.4],
)
def ising(spins, numbers, beta):
    n, m = spins.shape
    for k in range(numbers.shape[0]):
        i = int(numbers[k, 0] * n)
        j = int(numbers[k, 1] * m)
        near = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % m] + spins[i, j - 1]
        cost = 2 * spins[i, j] * near
        if cost <= 0 or numbers[k, 2] < np.exp(-cost * beta):
            spins[i, j] *= -1
    return spins


@given([floats(9, 8)], [floats(3, 3)], [floats(1, 4)])
def sobel(image):
    h, w = image.shape
    out = np.zeros((h, w))
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            gx = gy = 0.0
            for k in range(-1, 2):
                weight = 2 if k == 0 else 1
                gx += weight * (image[y + k, x + 1] - image[y + k, x - 1])
                gy += weight * (image[y + 1, x + k] - image[y - 1, x + k])
            out[y, x] = math.hypot(gx, gy)
    return out


@given([rng().uniform(size=(9, 12))], [rng().uniform(size=(1, 1))])
def dither(image):
    h, w = image.shape
    for y in range(h):
        for x in range(w):
            old = image[y, x]
            new = 1.0 if old > 0.5 else 0.0
            image[y, x] = new
            error = old - new
            if x + 1 < w:
                image[y, x + 1] += error * 7 / 16
            if y + 1 < h:
                if x > 0:
                    image[y + 1, x - 1] += error * 3 / 16
                image[y + 1, x] += error * 5 / 16
                if x + 1 < w:
                    image[y + 1, x + 1] += error / 16
    return image


@given([ints((9, 9), 0, 2)], [ints((1, 1), 0, 2)], [np.ones((4, 9), np.int64)])
def components(image):
    h, w = image.shape
    labels = np.zeros((h, w), dtype=np.int64)
    stack = np.zeros(h * w * 4 + 1, dtype=np.int64)
    count = 0
    for y in range(h):
        for x in range(w):
            if image[y, x] == 0 or labels[y, x] != 0:
                continue
            count += 1
            labels[y, x] = count
            stack[0] = y * w + x
            top = 1
            while top > 0:
                top -= 1
                a, b = divmod(stack[top], w)
                for k in range(4):
                    if k == 0:
                        c, d = a - 1, b
                    elif k == 1:
                        c, d = a + 1, b
                    elif k == 2:
                        c, d = a, b - 1
                    else:
                        c, d = a, b + 1
                    if c < 0 or c >= h or d < 0 or d >= w:
                        continue
                    if image[c, d] != 0 and labels[c, d] == 0:
                        labels[c, d] = count
                        stack[top] = c * w + d
                        top += 1
    return labels, count


# --- points and bodies ----------------------------------------------------------------------------


@given([floats(30, 2), 3, 5], [floats(9, 3), 1, 2], [floats(12, 1), 4, 0])
def k_means(points, k, iterations):
    n, d = points.shape
    centers = points[:k].copy()
    labels = np.zeros(n, dtype=np.int64)
    for _ in range(iterations):
        for i in range(n):
            best = np.inf
            for c in range(k):
                s = 0.0
                for q in range(d):
                    s += (points[i, q] - centers[c, q]) ** 2
                if s < best:
                    best = s
                    labels[i] = c
        sums = np.zeros((k, d))
        counts = np.zeros(k)
        for i in range(n):
            counts[labels[i]] += 1
            for q in range(d):
                sums[labels[i], q] += points[i, q]
        for c in range(k):
            if counts[c] > 0:
                for q in range(d):
                    centers[c, q] = sums[c, q] / counts[c]
    return centers, labels


@given(
    [floats(7, 3), floats(7, 3, seed=1), np.abs(floats(7)), 0.01, 4],
    [floats(1, 3), floats(1, 3), np.ones(1), 0.1, 3],
)
def n_bodies(x, v, m, dt, steps):
    n = len(m)
    for _ in range(steps):
        for i in range(n):
            ax, ay, az = 0.0, 0.0, 0.0
            for j in range(n):
                if i == j:
                    continue
                dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                r = (dx * dx + dy * dy + dz * dz + 1e-3) ** -1.5
                ax += m[j] * dx * r
                ay += m[j] * dy * r
                az += m[j] * dz * r
            v[i, 0] += dt * ax
            v[i, 1] += dt * ay
            v[i, 2] += dt * az
        for i in range(n):
            for k in range(3):
                x[i, k] += dt * v[i, k]


@given([floats(12, 2)], [floats(2, 2)], [floats(3, 2)])
def closest_pair(p):
    best = math.inf
    one, two = -1, -1
    for i in range(len(p)):
        for j in range(i):
            d = (p[i, 0] - p[j, 0]) ** 2 + (p[i, 1] - p[j, 1]) ** 2
            if d < best:
                best, one, two = d, i, j
    return best, one, two


@given(
    [floats(9, 2), np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])],
    [floats(0, 2), floats(3, 2)],
)
def in_polygon(points, polygon):
    inside = np.zeros(len(points), dtype=np.bool_)
    n = len(polygon)
    for k in range(len(points)):
        x, y = points[k, 0], points[k, 1]
        j = n - 1
        for i in range(n):
            xi, yi = polygon[i, 0], polygon[i, 1]
            xj, yj = polygon[j, 0], polygon[j, 1]
            if (yi > y) != (yj > y) and x < (xj - xi) * (y - yi) / (yj - yi) + xi:
                inside[k] = not inside[k]
            j = i
    return inside


@given([1], [4], [6], [5])
def queens(n):
    columns = np.zeros(n, dtype=np.int64)
    count = 0
    row = 0
    columns[0] = -1
    while row >= 0:
        columns[row] += 1
        while columns[row] < n:
            fits = True
            for k in range(row):
                if columns[k] == columns[row] or abs(columns[k] - columns[row]) == row - k:
                    fits = False
                    break
            if fits:
                break
            columns[row] += 1
        if columns[row] < n:
            if row == n - 1:
                count += 1
            else:
                row += 1
                columns[row] = -1
        else:
            row -= 1
    return count


@given([4], [1], [3])
def permutations(n):
    p = np.arange(n)
    counters = np.zeros(n, np.int64)
    total = 0
    i = 0
    while i < n:
        if counters[i] < i:
            if i % 2 == 0:
                p[0], p[i] = p[i], p[0]
            else:
                p[counters[i]], p[i] = p[i], p[counters[i]]
            total = (total * 31 + p[0] * 7 + p[n - 1]) % 1000003
            counters[i] += 1
            i = 0
        else:
            counters[i] = 0
            i += 1
    return total


@given([np.array([3, 1, 4, 1, 5, 9, 2, 6])], [ints(1)], [ints(0)])
def heap_of_numbers(x):
    heap = np.zeros(len(x), x.dtype)
    n = 0
    for v in x:
        heap[n] = v
        k = n
        n += 1
        while k > 0 and heap[(k - 1) // 2] > heap[k]:
            parent = (k - 1) // 2
            heap[k], heap[parent] = heap[parent], heap[k]
            k = parent
    total = 0
    while n > 0:
        total = total * 3 + heap[0]
        n -= 1
        heap[0] = heap[n]
        k = 0
        while True:
            least = k
            if 2 * k + 1 < n and heap[2 * k + 1] < heap[least]:
                least = 2 * k + 1
            if 2 * k + 2 < n and heap[2 * k + 2] < heap[least]:
                least = 2 * k + 2
            if least == k:
                break
            heap[k], heap[least] = heap[least], heap[k]
            k = least
    return total


@given([floats(10), 3], [floats(4), 4], [floats(0), 2])
def reversed_range(x, stride):
    total = 0.0
    last = -1
    for i in range(len(x) - 1, -1, -stride):
        total = total * 0.5 + x[i]
        last = i
    return total, last


@given([ints(5, -3, 4), 6], [ints(1, 1, 3), 6], [ints(9, -3, 9), -4])
def ranges_of_values(steps, stop):
    total = 0
    for s in steps:
        if s == 0:
            continue
        for k in range(0, stop, s):
            total += k + 1
    return total


# --- more ways of writing -------------------------------------------------------------------------


@given([floats(5, 5)], [np.zeros((3, 3))], [np.ones((1, 1))], [np.triu(floats(4, 4))])
def determinant(a):
    a = a.copy()
    n = a.shape[0]
    result = 1.0
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if a[pivot, k] == 0.0:
            return 0.0
        if pivot != k:
            for j in range(k, n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            result = -result
        result *= a[k, k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
    return result


@given([positive(4)], [positive(1)], [positive(9)])
def inverse(a):
    n = len(a)
    m = np.zeros((n, 2 * n))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j]
        m[i, n + i] = 1.0
    for i in range(n):
        d = m[i, i]
        for j in range(2 * n):
            m[i, j] /= d
        for r in range(n):
            if r == i:
                continue
            f = m[r, i]
            for j in range(2 * n):
                m[r, j] -= f * m[i, j]
    return m[:, n:]


@given([7, 20], [1, 5], [123456789, 12])
def linear_congruential(seed, n):
    out = np.empty(n, dtype=np.int64)
    state = seed
    for i in range(n):
        state = (1103515245 * state + 12345) % 2147483648
        out[i] = state >> 16
    return out


@given([np.uint64(88172645463325252), 10], [np.uint64(1), 4])
def xorshift(state, n):
    out = np.empty(n)
    for i in range(n):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        out[i] = (state >> np.uint64(11)) / 9007199254740992.0
    return out


@given([12345], [0], [7], [1000])
def digit_sum(n):
    total = 0
    while n > 0:
        n, digit = divmod(n, 10)
        total += digit
    return total


@given([153], [10], [9474], [0])
def is_narcissistic(n):
    digits, k = 0, n
    while k:
        digits += 1
        k //= 10
    total, k = 0, n
    while k:
        d = k % 10
        power = 1
        for _ in range(digits):
            power *= d
        total += power
        k //= 10
    return total == n


@given([ints(20, 0, 3)], [ints(0)], [ints(1, 0, 3)], [np.array([2, 1, 0])])
def dutch_flag(x):
    low, mid, high = 0, 0, len(x) - 1
    while mid <= high:
        if x[mid] == 0:
            x[low], x[mid] = x[mid], x[low]
            low += 1
            mid += 1
        elif x[mid] == 1:
            mid += 1
        else:
            x[mid], x[high] = x[high], x[mid]
            high -= 1
    return low, high


@given(
    [np.array([0, 2, 3, 4, 4]), np.array([1, 2, 3, 3])],
    [np.array([0, 1, 2]), np.array([1, 0])],
    [np.array([0, 0]), ints(0)],
)
def topological_order(starts, targets):
    n = len(starts) - 1
    degree = np.zeros(n, np.int64)
    for t in targets:
        degree[t] += 1
    order = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        if degree[i] == 0:
            order[count] = i
            count += 1
    head = 0
    while head < count:
        u = order[head]
        head += 1
        for k in range(starts[u], starts[u + 1]):
            v = targets[k]
            degree[v] -= 1
            if degree[v] == 0:
                order[count] = v
                count += 1
    if count < n:
        return -1
    return order[0]


@given([np.abs(floats(7, 7))], [np.zeros((1, 1))], [ints((5, 5), 1, 9)])
def minimum_tree(w):
    n = w.shape[0]
    inside = np.zeros(n, dtype=bool)
    cost = np.full(n, np.inf)
    cost[0] = 0.0
    total = 0.0
    for _ in range(n):
        best = -1
        for i in range(n):
            if inside[i]:
                continue
            if best < 0 or cost[i] < cost[best]:
                best = i
        inside[best] = True
        total += cost[best]
        for i in range(n):
            if not inside[i] and min(w[best, i], w[i, best]) < cost[i]:
                cost[i] = min(w[best, i], w[i, best])
    return total


@given([ints(15, 0, 9)], [ints(1)], [ints(2)], [np.array([3, 0, 0, 2, 0, 4])])
def trapped_water(h):
    i, j = 0, len(h) - 1
    left = right = 0
    total = 0
    while i < j:
        if h[i] < h[j]:
            if h[i] >= left:
                left = h[i]
            else:
                total += left - h[i]
            i += 1
        else:
            if h[j] >= right:
                right = h[j]
            else:
                total += right - h[j]
            j -= 1
    return total


@given([ints((4, 5))], [ints((1, 1))], [ints((3, 1))], [ints((5, 5))])
def spiral(a):
    top, bottom, left, right = 0, a.shape[0] - 1, 0, a.shape[1] - 1
    out = np.empty(a.size, a.dtype)
    k = 0
    while top <= bottom and left <= right:
        for j in range(left, right + 1):
            out[k] = a[top, j]
            k += 1
        top += 1
        for i in range(top, bottom + 1):
            out[k] = a[i, right]
            k += 1
        right -= 1
        if top <= bottom:
            for j in range(right, left - 1, -1):
                out[k] = a[bottom, j]
                k += 1
            bottom -= 1
        if left <= right:
            for i in range(bottom, top - 1, -1):
                out[k] = a[i, left]
                k += 1
            left += 1
    return out


@given([floats(6, 6)], [floats(1, 1)], [ints((5, 5))])
def transpose_in_place(a):
    for i in range(len(a)):
        for j in range(i):
            a[i, j], a[j, i] = a[j, i], a[i, j]


@given([floats(16) + 1j * floats(16, seed=1)], [floats(2) + 0j], [floats(8) + 0j])
def fft(x):
    n = len(x)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            x[i], x[j] = x[j], x[i]
    length = 2
    while length <= n:
        angle = -2 * math.pi / length
        w = complex(math.cos(angle), math.sin(angle))
        for i in range(0, n, length):
            f = 1.0 + 0.0j
            for k in range(length // 2):
                u = x[i + k]
                v = x[i + k + length // 2] * f
                x[i + k] = u + v
                x[i + k + length // 2] = u - v
                f *= w
        length <<= 1
    return x


@given([0, 0, 9, 4], [5, 5, 5, 5], [9, 0, 0, 3], [2, 9, 4, 0])
def line(x0, y0, x1, y1):
    out = np.zeros((10, 10), dtype=np.uint8)
    dx, dy = abs(x1 - x0), -abs(y1 - y0)
    sx = 1 if x0 < x1 else -1
    sy = 1 if y0 < y1 else -1
    error = dx + dy
    while True:
        out[y0, x0] = 1
        if x0 == x1 and y0 == y1:
            break
        twice = 2 * error
        if twice >= dy:
            error += dy
            x0 += sx
        if twice <= dx:
            error += dx
            y0 += sy
    return out


def simpson(low, high, n):
    h = (high - low) / n
    total = math.exp(-low * low) + math.exp(-high * high)
    for i in range(1, n):
        x = low + i * h
        total += (4 if i % 2 else 2) * math.exp(-x * x)
    return total * h / 3


@given([0.0, 2.0, 1e-9], [1.0, 1.5, 1e-3])
def integral(low, high, tolerance):
    n = 2
    before = simpson(low, high, n)
    for _ in range(12):
        n *= 2
        now = simpson(low, high, n)
        if abs(now - before) < tolerance:
            return now
        before = now
    return before


def find_root(parent, i):
    while parent[i] != i:
        i = parent[i]
    return i


@given([6, ints((5, 2), 0, 6)], [1, ints((0, 2))], [9, ints((12, 2), 0, 9)])
def components_by_helper(n, edges):
    parent = np.arange(n)
    for a, b in edges:
        ra, rb = find_root(parent, a), find_root(parent, b)
        if ra != rb:
            parent[rb] = ra
    count = 0
    for i in range(n):
        count += find_root(parent, i) == i
    return count


def first_at_least(x, limit):
    for i in range(len(x)):
        if x[i] >= limit:
            return i
    return -1


@given([np.sort(floats(12)), floats(5)], [floats(0), floats(2)], [floats(1), floats(1)])
def places(x, limits):
    out = np.empty(len(limits), np.int64)
    for k, limit in enumerate(limits):
        out[k] = first_at_least(x, limit)
    return out


@given([np.array([100.0, 90.0, 120.0, 80.0, 130.0])], [np.ones(1)], [np.arange(1.0, 9.0)])
def drawdown(prices):
    peak, worst = prices[0], 0.0
    start = end = at = 0
    for i, price in enumerate(prices):
        if price > peak:
            peak, at = price, i
        loss = (peak - price) / peak
        if loss > worst:
            worst, start, end = loss, at, i
    return worst, start, end


@given([ints(12, 1, 50), 3], [ints(1, 1, 5), 1], [ints(9, 1, 9), 4])
def trades(prices, fee):
    cash, hold = 0, -prices[0]
    for i in range(1, len(prices)):
        cash, hold = max(cash, hold + prices[i] - fee), max(hold, cash - prices[i])
    return cash


@given([8], [1], [0], [12])
def pascal(n):
    t = np.zeros((n + 1, n + 1), dtype=np.int64)
    for i in range(n + 1):
        t[i, 0] = t[i, i] = 1
        for j in range(1, i):
            t[i, j] = t[i - 1, j - 1] + t[i - 1, j]
    return t


@given([floats(6, 7), floats(9) * 3, floats(9, seed=2) * 3], [floats(2, 2), floats(1), floats(1)])
def bilinear(image, ys, xs):
    h, w = image.shape
    out = np.full(len(ys), np.nan)
    for k in range(len(ys)):
        y, x = ys[k], xs[k]
        if not (0 <= y <= h - 1 and 0 <= x <= w - 1):
            continue
        i, j = min(int(y), h - 2), min(math.floor(x), w - 2)
        a, b = y - i, x - j
        out[k] = (
            image[i, j] * (1 - a) * (1 - b)
            + image[i + 1, j] * a * (1 - b)
            + image[i, j + 1] * (1 - a) * b
            + image[i + 1, j + 1] * a * b
        )
    return out


@given([np.array([3, 1, 2]), np.array([5, 6, 7])], [ints(0), ints(0)], [np.array([0, 4]), ints(2)])
def repeated(counts, values):
    total = 0
    for c in counts:
        total += c
    out = np.empty(total, values.dtype)
    k = 0
    for c, v in zip(counts, values, strict=True):
        for _ in range(c):
            out[k] = v
            k += 1
    return out


@given([positive(4), 1e-9], [positive(2), 1e-9], [positive(1), 1e-9])
def jacobi_eigenvalues(a, tolerance):
    n = a.shape[0]
    a = a.copy()
    for _ in range(50):
        p, q, largest = 0, 1, 0.0
        for i in range(n):
            for j in range(i + 1, n):
                if abs(a[i, j]) > largest:
                    largest = abs(a[i, j])
                    p, q = i, j
        if largest < tolerance:
            break
        theta = 0.5 * math.atan2(2 * a[p, q], a[q, q] - a[p, p])
        c, s = math.cos(theta), math.sin(theta)
        for k in range(n):
            x, y = a[k, p], a[k, q]
            a[k, p] = c * x - s * y
            a[k, q] = s * x + c * y
        for k in range(n):
            x, y = a[p, k], a[q, k]
            a[p, k] = c * x - s * y
            a[q, k] = s * x + c * y
    total = 0.0
    for i in range(n):
        total += a[i, i] ** 2
    return total


@given([ints(25, 0, 4), 4], [ints(1, 0, 2), 2], [ints(0), 3])
def entropy(x, k):
    counts = [0.0] * 4
    table = np.zeros(k)
    for v in x:
        table[v] += 1
    total = 0.0
    for i in range(k):
        if table[i] > 0:
            p = table[i] / len(x)
            total -= p * math.log2(p)
    return total + sum(counts)


@given([rng().uniform(size=60)], [rng().uniform(size=2)], [rng().uniform(size=1)])
def estimate_pi(u):
    inside = 0
    for i in range(0, len(u) - 1, 2):
        if u[i] ** 2 + u[i + 1] ** 2 <= 1.0:
            inside += 1
    return 4.0 * inside / max(len(u) // 2, 1)


@given([9, 9], [1, 4], [5, 2])
def paths(h, w):
    t = np.ones((h, w), np.int64)
    for i in range(1, h):
        for j in range(1, w):
            t[i][j] = t[i - 1][j] + t[i][j - 1]
    return t[h - 1][w - 1]


@given([ints(14, 0, 2) > 0], [np.zeros(0, bool)], [np.ones(5, bool)])
def longest_run(flags):
    best = run = 0
    for flag in flags:
        if flag:
            run += 1
            best = max(best, run)
        else:
            run = 0
    return best


@given(
    [np.ones(5), ints(5, 0, 5)],
    [np.ones(4), np.array([0, 0, 2, 1])],
    [np.full(3, 1e-9), np.array([3, 0, 1])],  # a number too large, in the only step
)
def counts_until_small(x, to):
    moved = 1.0
    while moved > 1e-3:
        new = 0.5 * np.bincount(to, weights=x, minlength=len(x))
        moved = np.abs(new).sum()
        x = new
    return x


@given(
    [rng().normal(size=(4, 3)), rng(1).normal(size=(5, 3)), 3],
    [rng().normal(size=(1, 3)), rng(1).normal(size=(1, 3)), 2],
    [rng().normal(size=(4, 3)), rng(1).normal(size=(5, 3)), 4],  # beyond the end
)
def squared_distances(x, y, n):
    total = np.zeros((len(x), len(y)))
    for d in range(n):
        total += (x[:, d : d + 1] - y[:, d]) ** 2
    return total


# --- arrays whose lengths steps change ------------------------------------------------------------


@given([floats(40), 0.5, 30], [floats(41), 0.25, 30], [floats(31), 0.5, 30], [floats(30), 0.5, 30])
def binomial_tree(v, p, steps):
    """The last case cuts off more than there is."""
    s = np.abs(v) + 1
    for _ in range(steps):
        s = s[:-1] * 0.99
        v = np.maximum(1.5 - s, p * v[1:] + (1 - p) * v[:-1])
    return v, s.sum(), len(v)


@given([3], [20], [12])
def pascals_triangle(n):
    row = np.array([1])
    for _ in range(n):
        row = np.concatenate(([1], row[1:] + row[:-1], [1]))
    return row


@given([floats(20), 5], [floats(9), 2], [floats(9), 9])
def shortened_while_long(x, least):
    while len(x) > least:
        x = 0.5 * (x[1:] + x[:-1])
    return x, x[0], x.sum()


@given([floats(30), 25], [floats(40), 25], [floats(20), 25])
def shortened_until(x, steps):
    """The last case ends with an empty array."""
    count = 0
    for _ in range(steps):
        x = x[1:] * 1.5
        if x.sum() > 50:
            break
        count += 1
    return x, count


@given([floats(30, 40), 12], [floats(31, 30), 14])
def eroded(image, steps):
    for _ in range(steps):
        image = np.minimum(image[1:-1, 1:-1], image[2:, 1:-1]) + image[1:-1, :-2] * 0.1
    return image, image.shape


@given([floats(5), 12], [floats(3), 20])
def lengthened(x, steps):
    total = np.zeros(1)
    for k in range(steps):
        x = np.append(x, x[-1] + k)
        y = np.zeros(len(x) + 1)
        y[1:] = x
        total = total + y.sum()
    return x, total


@given([floats(30), 12], [floats(25), 12])
def divided_differences(x, steps):
    first = []
    for k in range(steps):
        first.append(x[0])
        x = np.diff(x) / (k + 1)
    return np.array(first), x


# --- choices that change arrays -------------------------------------------------------------------


@given([floats(5, 6)], [floats(1, 1)], [floats(2, 7)])
def dijkstra_on_a_grid(cost):
    n, m = cost.shape
    dist = np.full((n, m), np.inf)
    done = np.zeros((n, m), dtype=np.bool_)
    dist[0, 0] = cost[0, 0]
    for _step in range(n * m):
        best = np.inf
        bi, bj = -1, -1
        for i in range(n):
            for j in range(m):
                if not done[i, j] and dist[i, j] < best:
                    best = dist[i, j]
                    bi, bj = i, j
        if bi < 0:
            break
        done[bi, bj] = True
        for d in range(4):
            di = (d == 0) * 1 - (d == 1) * 1
            dj = (d == 2) * 1 - (d == 3) * 1
            i, j = bi + di, bj + dj
            if 0 <= i < n and 0 <= j < m:
                new = best + cost[i, j]
                if new < dist[i, j]:
                    dist[i, j] = new
    return dist


@given([ints((9, 8), high=2)], [ints((1, 1), high=2)], [ints((5, 11), high=3)])
def components_with_corners(image):
    n, m = image.shape
    labels = np.zeros((n, m), dtype=np.int64)
    stack = np.zeros((n * m * 4, 2), dtype=np.int64)
    current = 0
    for i in range(n):
        for j in range(m):
            if image[i, j] and labels[i, j] == 0:
                current += 1
                labels[i, j] = current
                top = 0
                stack[top, 0] = i
                stack[top, 1] = j
                top += 1
                while top > 0:
                    top -= 1
                    y, x = stack[top, 0], stack[top, 1]
                    for dy in range(-1, 2):
                        for dx in range(-1, 2):
                            yy, xx = y + dy, x + dx
                            if 0 <= yy < n and 0 <= xx < m:
                                if image[yy, xx] and labels[yy, xx] == 0:
                                    labels[yy, xx] = current
                                    stack[top, 0] = yy
                                    stack[top, 1] = xx
                                    top += 1
    return labels, current


@given([floats(40)], [floats(1)], [floats(7)])
def sort_by_a_stack(a):
    a = a.copy()
    n = a.shape[0]
    stack = np.zeros((64, 2), dtype=np.int64)
    stack[0, 0] = 0
    stack[0, 1] = n - 1
    top = 1
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        if lo < hi:
            pivot = a[(lo + hi) // 2]
            i, j = lo, hi
            while i <= j:
                while a[i] < pivot:
                    i += 1
                while a[j] > pivot:
                    j -= 1
                if i <= j:
                    t = a[i]
                    a[i] = a[j]
                    a[j] = t
                    i += 1
                    j -= 1
            stack[top, 0] = lo
            stack[top, 1] = j
            top += 1
            stack[top, 0] = i
            stack[top, 1] = hi
            top += 1
    return a


@given([ints((9, 8), high=2)], [ints((1, 1), high=2)], [ints((5, 11), high=3)])
def reached_from_a_corner(image):
    n, m = image.shape
    seen = np.zeros((n, m), dtype=np.int64)
    stack = np.zeros((n * m * 4, 2), dtype=np.int64)
    top = 1
    seen[0, 0] = 1
    while top > 0:
        top -= 1
        y, x = stack[top, 0], stack[top, 1]
        if y > 0 and image[y - 1, x] and seen[y - 1, x] == 0:
            seen[y - 1, x] = 1
            stack[top, 0] = y - 1
            stack[top, 1] = x
            top += 1
        if y < n - 1 and image[y + 1, x] and seen[y + 1, x] == 0:
            seen[y + 1, x] = 1
            stack[top, 0] = y + 1
            stack[top, 1] = x
            top += 1
        if x > 0 and image[y, x - 1] and seen[y, x - 1] == 0:
            seen[y, x - 1] = 1
            stack[top, 0] = y
            stack[top, 1] = x - 1
            top += 1
        if x < m - 1 and image[y, x + 1] and seen[y, x + 1] == 0:
            seen[y, x + 1] = 1
            stack[top, 0] = y
            stack[top, 1] = x + 1
            top += 1
    return seen


@given([ints((7, 8), high=2), 3, 4, 5], [ints((1, 1), high=2), 0, 0, 1])
def filled_again(image, sy, sx, new):
    image = image.copy()
    n, m = image.shape
    old = image[sy, sx]
    stack = np.zeros((n * m * 4, 2), dtype=np.int64)
    stack[0, 0] = sy
    stack[0, 1] = sx
    top = 1
    while top > 0:
        top -= 1
        y = stack[top, 0]
        x = stack[top, 1]
        if y < 0 or y >= n or x < 0 or x >= m:
            continue
        if image[y, x] != old:
            continue
        image[y, x] = new
        for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            stack[top, 0] = y + dy
            stack[top, 1] = x + dx
            top += 1
    return image


SUDOKU = np.array([[(i * 3 + i // 3 + j) % 9 + 1 for j in range(9)] for i in range(9)])


@given([SUDOKU], [np.roll(SUDOKU, 1, 0)], [np.roll(SUDOKU, 1, 1)])
def is_a_sudoku(g):
    for i in range(9):
        row = np.zeros(10, dtype=np.int64)
        col = np.zeros(10, dtype=np.int64)
        box = np.zeros(10, dtype=np.int64)
        for j in range(9):
            row[g[i, j]] += 1
            col[g[j, i]] += 1
            box[g[3 * (i // 3) + j // 3, 3 * (i % 3) + j % 3]] += 1
        for d in range(1, 10):
            if row[d] != 1 or col[d] != 1 or box[d] != 1:
                return False
    return True


@given([floats(6, 6)], [floats(1, 1)], [floats(2, 2)])
def salesman_by_bits(d):
    n = d.shape[0]
    full = 1 << n
    dp = np.full((full, n), np.inf)
    dp[1, 0] = 0
    for mask in range(full):
        for last in range(n):
            if dp[mask, last] < np.inf:
                for nxt in range(n):
                    if not (mask >> nxt) & 1:
                        new = mask | (1 << nxt)
                        c = dp[mask, last] + d[last, nxt]
                        if c < dp[new, nxt]:
                            dp[new, nxt] = c
    best = np.inf
    for last in range(1, n):
        best = min(best, dp[full - 1, last] + d[last, 0])
    return best


@given([floats(60)], [floats(1)], [np.arange(9.0)])
def longest_increasing_by_bisection(x):
    tails = np.zeros(len(x))
    size = 0
    for v in x:
        lo, hi = 0, size
        while lo < hi:
            mid = (lo + hi) // 2
            if tails[mid] < v:
                lo = mid + 1
            else:
                hi = mid
        tails[lo] = v
        if lo == size:
            size += 1
    return size
