#include "probe.h"

#include <time.h>
#include <unistd.h>

#include "simd.h"
#include "threads.h"

#define OW_LEAST_PASSES 3
#define OW_SAMPLE_NS 20000 /* a time shorter than this says more of the clock than of the work */
#define OW_PROBE_CHUNKS 8  /* for each thread, as kernels cut their work */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least nanoseconds that `pass` takes. */
static double best_of(void (*pass)(void *), void *arg, double seconds)
{
    double start = now(), end = start + seconds * 1e9, best = 0;
    int64_t times = 1;
    for (int passes = 0; passes < OW_LEAST_PASSES || now() < end;) {
        double from = now();
        for (int64_t i = 0; i < times; i++)
            pass(arg);
        double took = now() - from;
        if (took < OW_SAMPLE_NS) {
            times *= 2;
            continue;
        }
        took /= (double)times;
        if (passes++ == 0 || took < best)
            best = took;
    }
    return best;
}

/* --- memory ----------------------------------------------------------------------------------- */

typedef struct stream {
    double *z, *x, *y;
    int64_t n, chunks;
} stream;

static void stream_chunk(void *arg, int64_t k)
{
    const stream *s = arg;
    int64_t first = s->n * k / s->chunks, end = s->n * (k + 1) / s->chunks;
    ow_kernels->probe_add(s->z + first, s->x + first, s->y + first, end - first);
}

static void stream_pass(void *arg)
{
    stream *s = arg;
    ow_parallel(stream_chunk, s, s->chunks);
}

double ow_probe_stream(char *memory, int64_t bytes, int shared, double seconds)
{
    const int64_t item = (int64_t)sizeof(double), line = 64 / item;
    stream s = {.n = bytes / 3 / item / line * line, .chunks = 1};
    if (s.n < line)
        s.n = line;
    /* an array does not begin where another one does, modulo the page: loads would wait for
     * stores */
    const int64_t apart = s.n + 3 * line;
    s.z = (double *)(memory + (OW_PROBE_PAGE - (uintptr_t)memory % OW_PROBE_PAGE));
    s.x = s.z + apart;
    s.y = s.x + apart;
    if (shared)
        s.chunks = (int64_t)ow_threads() * OW_PROBE_CHUNKS;
    return (double)(3 * s.n * item) / best_of(stream_pass, &s, seconds);
}

/* --- arithmetic ------------------------------------------------------------------------------- */

typedef struct rate {
    ow_rate_fn fn;
    int64_t rounds, chunks, operations;
} rate;

static void rate_chunk(void *arg, int64_t k)
{
    rate *r = arg;
    double values[2] = {0.5, 1.0};
    int64_t operations = r->fn(values, r->rounds);
    if (k == 0)
        r->operations = operations;
}

static void rate_pass(void *arg)
{
    rate *r = arg;
    ow_parallel(rate_chunk, r, r->chunks);
}

double ow_probe_rate(int f64, int fused, int shared, double seconds)
{
    rate r = {.fn = ow_kernels->probe_rate[!!f64][!!fused], .rounds = 4000, .chunks = 1};
    if (shared)
        r.chunks = (int64_t)ow_threads() * OW_PROBE_CHUNKS;
    double ns = best_of(rate_pass, &r, seconds);
    return (double)r.operations * (double)r.rounds * (double)r.chunks / ns;
}

int64_t ow_second_level_cache(void)
{
#if defined(_SC_LEVEL2_CACHE_SIZE)
    return sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    return 0;
#endif
}
