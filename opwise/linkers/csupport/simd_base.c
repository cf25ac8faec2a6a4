#include "simd_targets.h"
#define OW_TABLE ow_simd_base
#define OW_TABLE_NAME "base"
#include "simd_body.h"
