/* The instructions of a Composite that the interpreter of elemwise.h runs. */
#ifndef OW_CODE_H
#define OW_CODE_H

#include "simd.h"

/* Elements that are worked on together: of a register, and of an operand that is copied. */
#define OW_CHUNK 512
#define OW_MAXREG 128

typedef struct ow_instr {
    ow_chunk_fn fn;
    int32_t out;
    int32_t nin;
    int32_t in[4];
} ow_instr;

typedef struct ow_code {
    int32_t nin, nout, nreg, ninstr;
    int32_t *itemsize; /* of each register; the first nin are the operands */
    int32_t *results;  /* register of each output */
    ow_instr *instr;
    const ow_reducer *reducer; /* folds the only result into the accumulator; NULL: no reduction */
    const ow_reducer *run;     /* the same for a run of elements and one accumulator */
    const ow_reducer *join;    /* folds accumulators */
    int64_t chunk;             /* elements of a register: half of OW_CHUNK if some have 16 bytes */
} ow_code;

#endif
