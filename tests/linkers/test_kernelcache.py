"""The cache: how much it keeps, what it deletes, and what it leaves alone."""

import os
import time

import pytest

from opwise.linkers import kernelcache
from opwise.linkers.trusted import Folder

pytestmark = pytest.mark.null

DAY = 86400


def key(number):
    return f"{number:064x}"


def name(number):
    return f"{number:032x}.so"


def fill(count, size=1000, first=0):
    """Keep some kernels, each used an hour after the one before; the last one now."""
    for number in range(first, first + count):
        path = kernelcache.keep(name(number), key(number), b"x" * size)
        used = time.time() - 3600 * (first + count - 1 - number)
        os.utime(path, (used, used))


def numbers(folder):
    """Return the numbers of the kernels in a folder."""
    return sorted(int(n[:-3], 16) for n in os.listdir(folder) if n.endswith(".so"))


@pytest.fixture
def swept(monkeypatch):
    """A list that gets an entry for each sweep."""
    calls, genuine = [], kernelcache.sweep

    def sweep(*args):
        calls.append(args)
        genuine(*args)

    monkeypatch.setattr(kernelcache, "sweep", sweep)
    return calls


def by_chance(monkeypatch, fraction):
    """Let every random number be this fraction of the largest."""
    monkeypatch.setattr(os, "urandom", lambda n: int(fraction * (256**n - 1)).to_bytes(n))


# --- reading --------------------------------------------------------------------------------------


def test_what_is_kept_is_read_under_its_own_key_alone(cache):
    path = kernelcache.keep(name(1), key(1), b"content")
    assert path == str(cache / name(1))
    assert kernelcache.read(name(1), key(1)) == b"content"
    assert kernelcache.read(name(2), key(2)) is None
    with pytest.warns(UserWarning, match="was renamed"):
        assert kernelcache.read(name(1), key(2)) is None


def test_a_seal_is_not_the_digest_of_key_and_content_run_together():
    assert kernelcache._seal("ab", b"c") != kernelcache._seal("a", b"bc")


# --- the bound ------------------------------------------------------------------------------------


def test_the_kernels_that_were_used_last_are_kept(use_cache, tmp_path):
    cache = use_cache(tmp_path / "cache", compiledir_bytes=-1)
    fill(10)
    kernelcache.sweep(kernelcache.existing(), 5 * 1064)
    assert numbers(cache) == [6, 7, 8, 9]  # room for an eighth, so that not every file sweeps
    kernelcache.sweep(kernelcache.existing(), 5 * 1064)
    assert numbers(cache) == [6, 7, 8, 9]


def test_reading_a_kernel_keeps_it(use_cache, tmp_path):
    cache = use_cache(tmp_path / "cache", compiledir_bytes=-1)
    fill(10)
    os.utime(cache / name(0), (time.time() - 2 * DAY,) * 2)
    assert kernelcache.read(name(0), key(0))
    kernelcache.sweep(kernelcache.existing(), 5 * 1064)
    assert 0 in numbers(cache)


def test_kernels_of_the_future_are_used_now_and_grow_old(use_cache, tmp_path):
    """The clock was wrong, or is that of another machine."""
    cache = use_cache(tmp_path / "cache", compiledir_bytes=-1)
    fill(10)
    for number in range(5):
        os.utime(cache / name(number), (time.time() + 1000 * DAY,) * 2)
    kernelcache.sweep(kernelcache.existing(), 8 * 1064)
    assert len(numbers(cache)) == 7
    assert all(os.stat(cache / n).st_mtime < time.time() + 60 for n in os.listdir(cache))


def test_all_kernels_of_the_future(use_cache, tmp_path):
    cache = use_cache(tmp_path / "cache", compiledir_bytes=-1)
    fill(10)
    for number in range(10):
        os.utime(cache / name(number), (2**33,) * 2)
    kernelcache.sweep(kernelcache.existing(), 4 * 1064)
    assert len(numbers(cache)) == 3


def test_the_bound_holds_while_kernels_are_written(use_cache, tmp_path, swept):
    cache = use_cache(tmp_path / "cache", compiledir_bytes=100_000)
    fill(1000, size=2000)
    total = sum(os.stat(cache / n).st_size for n in os.listdir(cache))
    assert total < 2 * 100_000  # by chance: on average an eighth too much
    assert numbers(cache)[-1] == 999
    assert 20 < len(swept) < 500


def test_a_large_bound_is_not_looked_after_at_each_kernel(cache, swept):
    fill(200)
    assert len(swept) <= 3  # the first, and hardly ever by chance: 1 in 67,000


def test_a_sweep_is_due_once_a_day_and_by_chance(cache, swept, monkeypatch):
    by_chance(monkeypatch, 1)
    fill(3)
    assert len(swept) == 1
    for age, due in ((3600, False), (2 * DAY, True), (-2 * DAY, True)):
        before = len(swept)
        os.utime(cache / "last-sweep", (time.time() - age,) * 2)
        fill(1)
        assert len(swept) - before == due
        fill(1)
        assert len(swept) - before == due
    by_chance(monkeypatch, 0)
    before = len(swept)
    fill(2)
    assert len(swept) - before == 2


def test_no_bound(use_cache, tmp_path, swept):
    cache = use_cache(tmp_path / "cache", compiledir_bytes=-1)
    fill(50)
    kernelcache.sweep(kernelcache.existing(), -1)
    assert len(numbers(cache)) == 50


# --- what others, and killed processes, left ------------------------------------------------------


THEIRS = ["notes.txt", "0.so", "libfoo.so", f"{0:032x}.so.bak", f"{0:032x}.py", "machine-1.json",
          "x.12345678.part", "tmp.so"]  # fmt: skip


def litter(cache):
    """Put there what is ours, and old, and what is not; return the names of the first."""
    ours = [
        f"{100:032x}.so.0123abcd.part",
        f"{100:032x}.c.0123abcd.part",
        "last-sweep.0123abcd.part",
        "tmpab_cdef1.so",
        f"{100:032x}.c",
    ]
    for one in (*ours, *THEIRS):
        (cache / one).write_text("x")
        os.utime(cache / one, (time.time() - 30 * DAY,) * 2)
    target = cache.parent / "target"
    target.write_text("precious")
    (cache / f"{101:032x}.so").symlink_to(target)
    (cache / f"{102:032x}.so").mkdir()
    (cache / f"{102:032x}.so" / "within").write_text("x")
    return ours


def survived(cache):
    found = set(os.listdir(cache)) - {"last-sweep"}
    assert found >= {*THEIRS, f"{101:032x}.so", f"{102:032x}.so"}
    assert (cache.parent / "target").read_text() == "precious"
    assert (cache / f"{102:032x}.so" / "within").exists()
    return found - {*THEIRS, f"{101:032x}.so", f"{102:032x}.so"}


@pytest.mark.parametrize("shift", [0, 60 * DAY], ids=["old", "of the future"])
def test_a_sweep_removes_what_killed_processes_left(cache, shift):
    fill(2)
    ours = litter(cache)
    for one in ours[:-1]:
        os.utime(cache / one, (time.time() - 30 * DAY + shift,) * 2)
    young = f"{103:032x}.so.0123abcd.part"
    (cache / young).write_text("of a process that is at work")
    kernelcache.sweep(kernelcache.existing(), 1 << 20)
    assert survived(cache) == {name(0), name(1), young}


def test_clear_removes_its_own_files_alone(cache):
    fill(3)
    litter(cache)
    (cache / "0123456789abcdef.cubin").write_text("x")
    assert kernelcache.clear(kernelcache.existing()) == ({"kernel": 4}, 0)
    assert survived(cache) == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_clear_leaves_what_belongs_to_others(cache):
    fill(2)
    os.chown(cache / name(1), 65534, -1)
    assert kernelcache.clear(kernelcache.existing()) == ({"kernel": 1}, 0)
    assert numbers(cache) == [1]


def test_clear_says_what_could_not_be_deleted(cache, monkeypatch):
    fill(2)
    monkeypatch.setattr(Folder, "remove", lambda self, name: False)
    assert kernelcache.clear(kernelcache.existing()) == ({}, 2)


def test_looking_does_not_make_the_folder(cache):
    assert kernelcache.existing() is None and not cache.exists()


# --- a folder for others --------------------------------------------------------------------------


def test_where_no_folder_is_safe_nothing_can_be_kept(cache, monkeypatch, tmp_path):
    cache.mkdir()
    cache.chmod(0o777)
    monkeypatch.setattr(kernelcache, "temporary_places", lambda: [str(tmp_path / "nowhere")])
    monkeypatch.setattr("opwise.linkers.trusted._of_process", {})
    with pytest.warns(UserWarning, match="is not used"):
        folder = kernelcache.folder()
    with pytest.raises(OSError, match="Not a directory"):
        os.stat(os.path.join(folder, "x.json"))


def test_an_unsafe_folder_is_replaced_by_one_of_the_process(cache):
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.warns(UserWarning, match="is not used"):
        private = kernelcache.folder()
    assert kernelcache.folder() == private != str(cache)  # and no second warning
    path = kernelcache.as_file("x.cubin", b"binary")
    assert os.path.dirname(path) == private
    with open(path, "rb") as f:
        assert f.read() == b"binary"


# --- graphs ---------------------------------------------------------------------------------------


def test_small_graphs_count_as_16_kilobytes(use_cache, tmp_path):
    """Many small files make a folder slow."""
    cache = use_cache(tmp_path / "cache", compiledir_bytes=-1)
    for number in range(10):
        path = kernelcache.keep(f"{number:032x}.graph", key(number), b"x")
        used = time.time() - 3600 * (10 - number)
        os.utime(path, (used, used))
    kernelcache.sweep(kernelcache.existing(), 5 * 16384)
    assert sorted(n[-7] for n in os.listdir(cache) if n.endswith(".graph")) == list("6789")


def test_a_damaged_graph_says_what_happens(cache):
    kernelcache.keep(f"{1:032x}.graph", key(1), b"content")
    with pytest.warns(UserWarning, match="The graph is optimized anew"):
        assert kernelcache.read(f"{1:032x}.graph", key(2)) is None
