/* Loops that few calls need: each is compiled at the first of them. */
#ifndef OW_ON_DEMAND_H
#define OW_ON_DEMAND_H

#include "runtime.h"

typedef struct ow_on_demand {
    ow_loop loop;    /* NULL before, and if it cannot be compiled */
    int32_t missing; /* whether it cannot be compiled */
    void *owner;     /* the Python object that compiles it */
} ow_on_demand;

/* Compiles a loop, if it can be; returns OW_OK, or OW_PYTHON_ERROR after an interrupt. */
extern int (*ow_compile_on_demand)(ow_on_demand *);

static inline int ow_demand(ow_on_demand *d)
{
    return d->loop || d->missing ? OW_OK : ow_compile_on_demand(d);
}

#endif
