/* The kinds of C steps by name. Each file kinds_*.c has a table of some, and what the VM asks of
 * them. */
#ifndef OW_KINDS_H
#define OW_KINDS_H

#include "on_demand.h"
#include "runtime.h"
#include "step_params.h"

typedef struct ow_kind {
    const char *name;
    size_t params; /* bytes of the struct of its parameters, 0 without any */
    ow_fn prep, run;
    int flags;
    ow_fn undo;  /* of kinds that may write the new value of a state over the old one */
    ow_fn check; /* fails where `run` of a prepared step would, and writes nothing; or NULL */
    int reads;   /* prep and check read the values of the inputs from this one on; 0: of none */
} ow_kind;

static inline int ow_prep_nothing(ow_step *s)
{
    (void)s;
    return OW_OK;
}

/* Each ends with a kind without a name. */
extern const ow_kind ow_kinds_of_arrays[], ow_kinds_of_indices[], ow_kinds_of_algebra[],
    ow_kinds_of_images[], ow_kinds_of_rows[];
#define OW_KIND_TABLES 5
static const ow_kind *const ow_kind_tables[OW_KIND_TABLES] = {
    ow_kinds_of_arrays, ow_kinds_of_indices, ow_kinds_of_algebra,
    ow_kinds_of_images, ow_kinds_of_rows,
};

static inline const ow_kind *ow_find_kind(const char *name)
{
    for (int i = 0; i < OW_KIND_TABLES; i++)
        for (const ow_kind *k = ow_kind_tables[i]; k->name; k++)
            if (!strcmp(k->name, name))
                return k;
    return NULL;
}

/* Runs the instructions of an ow_code of elemwise.h. */
extern ow_loop const ow_interpreter;

/* The name of row i of the table of additions, or of that of positions of maxima; NULL at the
 * end. */
const char *ow_adder_name(int i);
const char *ow_argmaxer_name(int i);

/* Keep a function of BLAS or LAPACK; 0: there is none of this name. */
int ow_set_blas(const char *name, void *fn);
int ow_has_blas(void);
int ow_has_lapack(void);
/* What fills them in when the first step needs them; see blas.h and lapack.h. */
extern int (*ow_load_blas)(char *error);
extern int (*ow_load_lapack)(char *error);

/* In how many parts the rows and columns of a product are cut for the team. */
void ow_cuts(int64_t m, int64_t n, int64_t k, int type, int64_t *down, int64_t *across);

/* The name of the algorithm of a step of a convolution, or of one of its gradients; NULL if the
 * lengths do not belong together. */
enum { OW_FORWARD, OW_BY_IMAGES, OW_BY_KERNELS };
const char *ow_conv_algorithm_of(int kind, const void *params, const int64_t *image,
                                 const int64_t *kernel, int f64);

#endif
