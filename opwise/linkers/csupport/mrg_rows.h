/* Numbers of MRG31k3p (see tensor/random/mrg.py), several streams side by side; ow_mrg_step is that
 * of scalar.h.
 * The states of a block of streams are copied into six arrays. A step needs x[n-2] and x[n-3],
 * y[n-1] and y[n-3]; what it computes takes the place of x[n-3] and y[n-3], so that states move in
 * turns through the arrays, and never from one to another. */
#define OW_MRG_BLOCK 256

#define OW_MRG(T, S, NORM)                                                                         \
    OW_WITHIN void ow_mrg_turn_##S(const int32_t *restrict x2, int32_t *restrict x3,               \
                                   const int32_t *restrict y1, int32_t *restrict y3,               \
                                   T *restrict to, int64_t n)                                      \
    {                                                                                              \
        for (int64_t k = 0; k < n; k++)                                                            \
            to[k] = (T)ow_mrg_step(x2[k], &x3[k], y1[k], &y3[k]) * NORM;                           \
    }                                                                                              \
                                                                                                   \
    /* `turns` numbers of each of n streams, n <= OW_MRG_BLOCK; those of a turn lie side by \
     * side */      \
    static void ow_mrg_block_##S(const ow_mrg_job *j, const ow_slot *old, int64_t first, T *to,    \
                                 int64_t n, int64_t turns)                                         \
    {                                                                                              \
        int32_t s[6][OW_MRG_BLOCK];                                                                \
        const char *state = old->data + first * old->strides[0];                                   \
        for (int64_t k = 0; k < n; k++, state += old->strides[0])                                  \
            for (int c = 0; c < 6; c++)                                                            \
                s[c][k] = *(const int32_t *)(state + c * old->strides[1]);                         \
        int at = 2; /* where x[n-3] and y[n-3] are */                                              \
        for (int64_t t = 0; t < turns; t++, to += j->streams) {                                    \
            const int before = at ? at - 1 : 2, after = at == 2 ? 0 : at + 1;                      \
            ow_mrg_turn_##S(s[before], s[at], s[3 + after], s[3 + at], to, n);                     \
            at = before;                                                                           \
        }                                                                                          \
        const int64_t column = j->after->strides[1];                                               \
        char *after = j->after->data + first * j->after->strides[0];                               \
        for (int64_t k = 0; k < n; k++, after += j->after->strides[0])                             \
            for (int c = 0; c < 3; c++) {                                                          \
                const int from = (at + 1 + c) % 3;                                                 \
                *(int32_t *)(after + c * column) = s[from][k];                                     \
                *(int32_t *)(after + (3 + c) * column) = s[3 + from][k];                           \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    static void ow_mrg_##S(const ow_mrg_job *j, int64_t first, int64_t end)                        \
    {                                                                                              \
        const int64_t turns = j->total / j->streams, rest = j->total % j->streams;                 \
        T *to = (T *)j->numbers;                                                                   \
        for (int64_t k = first; k < end; k += OW_MRG_BLOCK) {                                      \
            const int64_t n = end - k < OW_MRG_BLOCK ? end - k : OW_MRG_BLOCK;                     \
            if (turns || j->before->data != j->after->data)                                        \
                ow_mrg_block_##S(j, j->before, k, to + k, n, turns);                               \
            if (rest > k) /* the last turn is that of the first streams only */                    \
                ow_mrg_block_##S(j, j->after, k, to + turns * j->streams + k,                      \
                                 rest - k < n ? rest - k : n, 1);                                  \
        }                                                                                          \
    }
OW_MRG(float, f32, 4.6566126e-10f)
OW_MRG(double, f64, 4.656612873077392578125e-10)
#undef OW_MRG
