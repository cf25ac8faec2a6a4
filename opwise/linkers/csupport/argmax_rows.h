/* The position of the largest of elements that lie side by side, block by block: where a block has a
 * larger one, or NaN, it is read again. */
#define OW_ARGMAX_BLOCK 1024

static void OW_N(ow_argmax_run)(const char *p, int64_t n, int64_t from, void *best, int64_t *where)
{
    const OW_T *x = (const OW_T *)p;
    OW_T b = *(OW_T *)best;
    if (*where < 0) {
        b = x[0];
        *where = from;
    }
    for (int64_t first = 0; first < n && b == b; first += OW_ARGMAX_BLOCK) {
        const int64_t end = n - first < OW_ARGMAX_BLOCK ? n : first + OW_ARGMAX_BLOCK;
        OW_T most = b;
        int nans = 0;
#pragma omp simd reduction(max : most) reduction(| : nans)
        for (int64_t i = first; i < end; i++) {
            most = x[i] > most ? x[i] : most;
            nans |= x[i] != x[i];
        }
        if (!nans && !(most > b))
            continue;
        int64_t i = first;
        while (nans ? x[i] == x[i] : x[i] != most)
            i++;
        b = x[i];
        *where = from + i;
    }
    *(OW_T *)best = b;
}
#undef OW_ARGMAX_BLOCK
