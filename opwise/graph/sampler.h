/* Which calls of the program are running, asked every few milliseconds: see sampler.c. */
#ifndef OW_SAMPLER_H
#define OW_SAMPLER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Add the functions of the sampler to a module, and have it end with the process. -1: failed. */
int ow_add_sampler(PyObject *module);

#endif
