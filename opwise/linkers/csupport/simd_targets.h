/* Whether the compiler can make code for other processors than the one it compiles for. */
#ifndef OW_SIMD_TARGETS_H
#define OW_SIMD_TARGETS_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define OW_X86_VECTORS
#endif

#endif
