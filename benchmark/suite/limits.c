/* What this machine's memory delivers: bytes a second, from as many threads as it has processors.

   Every thread passes over arrays of its own that it touched first. A pass reads them (a sum), or
   computes a[i] = b[i] + s * c[i], by ordinary stores or past the caches. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

enum { READ, TRIAD, STREAMING_TRIAD };

typedef struct {
    pthread_barrier_t *barrier;
    int kind;
    size_t count; /* numbers in each array of a thread */
    long passes;
    double start, end, sink;
    int failed;
} Task;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

typedef double Four __attribute__((vector_size(32)));

/* Eight sums side by side, since an addition takes some cycles. */
static double read_all(const double *a, size_t n)
{
    const Four *v = (const Four *)a;
    Four s0 = {0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    for (size_t i = 0; i + 8 <= n / 4; i += 8) {
        s0 += v[i], s1 += v[i + 1], s2 += v[i + 2], s3 += v[i + 3];
        s4 += v[i + 4], s5 += v[i + 5], s6 += v[i + 6], s7 += v[i + 7];
    }
    s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7;
    return s0[0] + s0[1] + s0[2] + s0[3];
}

static void triad(double *restrict a, const double *restrict b, const double *restrict c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + 3.0 * c[i];
}

static void streaming_triad(double *a, const double *b, const double *c, size_t n)
{
#ifdef __AVX__
    __m256d s = _mm256_set1_pd(3.0);
    for (size_t i = 0; i + 4 <= n; i += 4)
        _mm256_stream_pd(
            a + i, _mm256_add_pd(_mm256_load_pd(b + i), _mm256_mul_pd(s, _mm256_load_pd(c + i))));
    _mm_sfence();
#else
    triad(a, b, c, n);
#endif
}

static void *work(void *given)
{
    Task *t = given;
    size_t n = t->count, arrays = t->kind == READ ? 1 : 3;
    double *a = NULL;
    t->failed = posix_memalign((void **)&a, 4096, arrays * n * sizeof(double)) != 0;
    if (!t->failed)
        for (size_t i = 0; i < arrays * n; i++)
            a[i] = 1.0;
    for (long pass = -1; pass < t->passes; pass++) {
        if (pass == 0) { /* the pass before brought everything as near as it gets */
            pthread_barrier_wait(t->barrier);
            t->start = now();
        }
        if (t->failed)
            continue;
        if (t->kind == READ)
            t->sink += read_all(a, n);
        else if (t->kind == TRIAD)
            triad(a, a + n, a + 2 * n, n);
        else
            streaming_triad(a, a + n, a + 2 * n, n);
        __asm__ volatile("" : : "r"(a) : "memory");
    }
    t->end = now();
    free(a);
    return NULL;
}

/* Bytes a second over arrays of so many bytes in all; 0 if memory or threads are not to be had. */
double bandwidth(int kind, size_t bytes, int threads, long passes)
{
    size_t arrays = kind == READ ? 1 : 3;
    size_t count = bytes / threads / arrays / sizeof(double) / 32 * 32;
    pthread_t *ids = calloc(threads, sizeof *ids);
    Task *tasks = calloc(threads, sizeof *tasks);
    pthread_barrier_t barrier;
    double rate = 0;
    if (!ids || !tasks || !count || pthread_barrier_init(&barrier, NULL, threads))
        goto done;
    for (int k = 0; k < threads; k++) {
        tasks[k] = (Task){.barrier = &barrier, .kind = kind, .count = count, .passes = passes};
        if (pthread_create(&ids[k], NULL, work, &tasks[k]))
            abort(); /* the others would wait for it at the barrier for ever */
    }
    double start = 0, end = 0;
    int failed = 0;
    for (int k = 0; k < threads; k++) {
        pthread_join(ids[k], NULL);
        failed |= tasks[k].failed;
        start = k == 0 || tasks[k].start < start ? tasks[k].start : start;
        end = k == 0 || tasks[k].end > end ? tasks[k].end : end;
    }
    pthread_barrier_destroy(&barrier);
    if (!failed)
        rate = (double)count * arrays * sizeof(double) * threads * passes / (end - start);
done:
    free(ids);
    free(tasks);
    return rate;
}
