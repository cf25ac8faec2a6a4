#include <string.h>

#include "built_vectors.h"
#include "simd.h"

extern const ow_simd ow_simd_base, ow_simd_avx2, ow_simd_avx512;

const ow_simd *ow_kernels = &ow_simd_base;
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

static int always(void)
{
    return 1;
}

/* what the library holds, the widest first */
static const struct {
    const ow_simd *kernels;
    int (*has)(void);
} all[] = {
#if defined(OW_X86_VECTORS) && defined(OW_HAS_AVX512)
    {&ow_simd_avx512, has_avx512},
#endif
#if defined(OW_X86_VECTORS) && defined(OW_HAS_AVX2)
    {&ow_simd_avx2, has_avx2},
#endif
    {&ow_simd_base, always},
};

int ow_use_kernels(const char *name)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i].has() && (name == NULL || !strcmp(name, all[i].kernels->name))) {
            ow_kernels = all[i].kernels;
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
    /* AMD's first processors with vectors of 64 bytes store chosen elements of one, as sorting does, many times
     * slower than later ones and than Intel's */
    if (has_avx512() && !__builtin_cpu_is("amdfam19h"))
        ow_sort_wide = 1 << 24;
#endif
}
