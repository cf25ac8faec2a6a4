#include "simd_targets.h"
#ifdef OW_X86_VECTORS
#pragma GCC target("avx2,fma")
#define OW_TABLE ow_simd_avx2
#define OW_TABLE_NAME "avx2"
#include "simd_body.h"
#endif
