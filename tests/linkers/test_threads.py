"""The team of threads: when its caller works alone. The C code is built on its own."""

import shutil
import subprocess
from pathlib import Path

import pytest

import opwise.linkers

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="builds a program with gcc"),
]

#: A member is held up for 60 ms in a chunk, as one that lost its processor. The program prints how
#: many chunks others do right after that, and ends when others do chunks again.
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include "threads.h"

static pthread_t caller;
static int others, held;

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void chunk(void *arg, int64_t k)
{
    const int *hold = arg;
    (void)k;
    if (pthread_equal(pthread_self(), caller)) {
        sleep_ms(*hold ? 2 : 1); /* the others find chunks */
        return;
    }
    __atomic_add_fetch(&others, 1, __ATOMIC_SEQ_CST);
    if (*hold && !__atomic_exchange_n(&held, 1, __ATOMIC_SEQ_CST))
        sleep_ms(60);
}

static int jobs(int n, int hold)
{
    others = 0;
    for (int i = 0; i < n; i++)
        ow_parallel(chunk, &hold, 4);
    return others;
}

int main(void)
{
    caller = pthread_self();
    ow_set_threads(2);
    while (!held)
        jobs(1, 1);
    printf("%d\n", jobs(5, 0));
    while (jobs(1, 0) == 0)
        sleep_ms(10);
    ow_set_threads(1);
    return 0;
}
"""


def test_a_team_that_was_held_up_rests_and_works_again(tmp_path):
    source, program = tmp_path / "team.c", tmp_path / "team"
    source.write_text(PROGRAM)
    support = Path(opwise.linkers.__file__).parent / "csupport"
    subprocess.run(
        ["gcc", "-std=gnu11", "-pthread", f"-I{support}", str(source), str(support / "threads.c"),
         str(support / "buffers.c"), "-o", str(program)],
        check=True,
    )  # fmt: skip
    found = subprocess.run([str(program)], check=True, capture_output=True, text=True, timeout=60)
    assert found.stdout == "0\n", "chunks that others did while the team rested"
