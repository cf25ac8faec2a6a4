#include <string.h>

#include "simd.h"

extern const ow_simd ow_simd_base;
#ifdef OW_X86_VECTORS
extern const ow_simd ow_simd_avx2, ow_simd_avx512;
#endif

const ow_simd *ow_kernels = &ow_simd_base;
ow_sort_in_place_fn ow_sort_in_place[2];
int64_t ow_sort_wide;

static int has(const ow_simd *kernels)
{
#ifdef OW_X86_VECTORS
    __builtin_cpu_init();
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return kernels == &ow_simd_avx512 ? avx512 : kernels == &ow_simd_avx2 ? avx2 : 1;
#else
    (void)kernels;
    return 1;
#endif
}

static const ow_simd *all[] = {
#ifdef OW_X86_VECTORS
    &ow_simd_avx512, &ow_simd_avx2,
#endif
    &ow_simd_base,
};

int ow_use_kernels(const char *name)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (has(all[i]) && (name == NULL || !strcmp(name, all[i]->name))) {
            ow_kernels = all[i];
            return 1;
        }
    return 0;
}

__attribute__((constructor)) static void choose(void)
{
    ow_use_kernels(NULL);
#ifdef OW_X86_VECTORS
    /* AMD's first processors with vectors of 64 bytes store chosen elements of one, as sorting does, many times
     * slower than later ones and than Intel's */
    if (has(&ow_simd_avx512) && !__builtin_cpu_is("amdfam19h"))
        ow_sort_wide = 1 << 24;
#endif
}
