#include <string.h>

#include "built_vectors.h"
#include "simd.h"

/* Each part of a table is filled in by a file of its own; setup.py makes these files. */
#define OW_DECLARE(target)                                                                         \
    void ow_fill_sums_##target(ow_simd *), ow_fill_loops_##target(ow_simd *),                      \
        ow_fill_rows_##target(ow_simd *), ow_fill_products_##target(ow_simd *),                    \
        ow_fill_images_##target(ow_simd *);
#define OW_FILLS(target)                                                                           \
    {ow_fill_sums_##target, ow_fill_loops_##target, ow_fill_rows_##target,                         \
     ow_fill_products_##target, ow_fill_images_##target}
OW_DECLARE(base)
OW_DECLARE(avx2)
OW_DECLARE(avx512)
#define OW_PARTS 5

const ow_simd *ow_kernels;
ow_sort_in_place_fn ow_sort_in_place[2];
int64_t ow_sort_wide;

#ifdef OW_X86_VECTORS
static int has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

static int has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static int always(void) { return 1; }

/* what the library holds, the widest first */
static const struct {
    const char *name;
    int (*has)(void);
    void (*fill[OW_PARTS])(ow_simd *);
} all[] = {
#if defined(OW_X86_VECTORS) && defined(OW_HAS_AVX512)
    {"avx512", has_avx512, OW_FILLS(avx512)},
#endif
#if defined(OW_X86_VECTORS) && defined(OW_HAS_AVX2)
    {"avx2", has_avx2, OW_FILLS(avx2)},
#endif
    {"base", always, OW_FILLS(base)},
};
#define OW_TABLES (sizeof(all) / sizeof(*all))
static ow_simd tables[OW_TABLES];

int ow_use_kernels(const char *name)
{
    for (size_t i = 0; i < OW_TABLES; i++)
        if (all[i].has() && (name == NULL || !strcmp(name, all[i].name))) {
            if (tables[i].name == NULL)
                for (int part = 0; part < OW_PARTS; part++)
                    all[i].fill[part](&tables[i]);
            tables[i].name = all[i].name;
            ow_kernels = &tables[i];
            return 1;
        }
    return 0;
}

const char *ow_processor_vectors(void)
{
#ifdef OW_X86_VECTORS
    return has_avx512() ? "avx512" : has_avx2() ? "avx2" : "base";
#else
    return "base";
#endif
}

__attribute__((constructor)) static void choose(void)
{
    ow_use_kernels(NULL);
#ifdef OW_X86_VECTORS
    /* AMD's first processors with vectors of 64 bytes store chosen elements of one, as sorting
     * does, many times slower than later ones and than Intel's */
    if (has_avx512() && !__builtin_cpu_is("amdfam19h"))
        ow_sort_wide = 1 << 24;
#endif
}
