#include "simd_targets.h"
#ifdef OW_X86_VECTORS
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,fma")
#define OW_TABLE ow_simd_avx512
#define OW_TABLE_NAME "avx512"
#include "simd_body.h"
#endif
