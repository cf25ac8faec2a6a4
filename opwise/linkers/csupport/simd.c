#include "simd.h"

extern const ow_simd ow_simd_base;
#ifdef OW_X86_VECTORS
extern const ow_simd ow_simd_avx2, ow_simd_avx512;
#endif

const ow_simd *ow_kernels = &ow_simd_base;
ow_sort_in_place_fn ow_sort_in_place[2];

__attribute__((constructor)) static void choose(void)
{
#ifdef OW_X86_VECTORS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        ow_kernels = &ow_simd_avx512;
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        ow_kernels = &ow_simd_avx2;
#endif
}
