# cython: language_level=3
# What the extension takes of C: numpy's and Python's functions, and those of csupport/*.h.

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "numpy/arrayobject.h":
    int PyArray_SetBaseObject(cnp.ndarray, object) except -1
    bint PyArray_CheckExact(object)
    bint PyArray_EquivTypenums(int, int)
    bint PyArray_ISBEHAVED_RO(cnp.ndarray)
    void PyArray_ScalarAsCtype(object, void *)
    bint PyArray_ISWRITEABLE(cnp.ndarray)
    void PyArray_CLEARFLAGS(cnp.ndarray, int)

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident() nogil

cdef extern from "runtime.h":
    int OW_MAXDIM, OW_MAXARG, OW_STATIC, OW_TOTAL, OW_CHECKED, OW_ERROR_SIZE
    int OW_OK, OW_VALUE_ERROR, OW_INDEX_ERROR, OW_TYPE_ERROR, OW_MEMORY_ERROR
    int OW_ZERO_DIVISION, OW_LINALG_ERROR, OW_ASSERTION_ERROR, OW_PYTHON_ERROR
    ctypedef struct ow_slot
    ctypedef struct ow_step
    ctypedef int (*ow_fn)(ow_step *) noexcept nogil
    ctypedef void (*ow_loop)(const void *, char **, const int64_t *, int64_t) noexcept nogil

cdef extern from "simd.h":
    ctypedef struct ow_reducer:
        const char *name
    ctypedef void (*ow_chunk_fn)(void *, const void *const *, int64_t) noexcept nogil

include "structs.pxi"

cdef extern from "runtime.h":
    bint ow_is_true(const ow_slot *)
    char *ow_alloc(int64_t)
    int64_t ow_capacity(const char *)
    void ow_free(char *) nogil
    int64_t ow_mul_size(int64_t, int64_t)
    int64_t ow_add_size(int64_t, int64_t)
    int64_t ow_bytes(int, const int64_t *, int64_t)
    void ow_dense_strides(ow_slot *, const ow_slot *)
    void ow_keep_at_most(int64_t)
    void ow_fill_new(int)
    int64_t ow_kept()
    int ow_threads()
    void ow_set_threads(int)
    ctypedef int (*ow_look)() noexcept nogil
    void ow_watch_begin(ow_look) nogil
    int ow_watch_end() nogil
    bint ow_is_long(const ow_step *)
    bint ow_is_dense(const ow_slot *)
    int64_t ow_size(const ow_slot *)
    int ow_ensure(ow_step *, ow_slot *)
    int64_t ow_int(const ow_slot *)
    char *ow_scratch(ow_step *, int64_t)
    char *ow_at(const char *, int64_t, int64_t)
    void ow_alias(ow_slot *, const ow_slot *)
    bint ow_is_c_contiguous(const ow_slot *)
    void ow_c_strides(ow_slot *)

cdef extern from "copy.h":
    void ow_copy(ow_slot *, ow_slot *)

cdef extern from "ending.h" nogil:
    void ow_ending_watch(void (*)() noexcept nogil)
    void ow_ending_before_fork()
    void ow_ending_after_fork()
    void ow_ending_after_fork_in_child()
    void ow_ending_leave()

cdef extern from "on_demand.h":
    int (*ow_compile_on_demand)(ow_on_demand *)

cdef extern from "kinds.h":
    const ow_kind *ow_find_kind(const char *)
    int OW_KIND_TABLES
    const ow_kind *ow_kind_tables[]
    const ow_loop ow_interpreter
    const char *ow_adder_name(int)
    const char *ow_argmaxer_name(int)
    bint ow_set_blas(const char *, void *)
    bint ow_has_blas()
    bint ow_has_lapack()
    int (*ow_load_blas)(char *)
    int (*ow_load_lapack)(char *)
    void ow_cuts(int64_t, int64_t, int64_t, int, int64_t *, int64_t *)
    int OW_FORWARD, OW_BY_IMAGES, OW_BY_KERNELS
    const char *ow_conv_algorithm_of(int, const void *, const int64_t *, const int64_t *, int)

cdef extern from *:
    """
    static void *ow_np_malloc(void *ctx, size_t n) { (void)ctx; return ow_alloc((int64_t)n); }
    static void *ow_np_calloc(void *ctx, size_t n, size_t size)
    {
        (void)ctx;
        int64_t bytes;
        if (__builtin_mul_overflow((int64_t)n, (int64_t)size, &bytes))
            return NULL;
        void *p = ow_alloc(bytes);
        return p ? memset(p, 0, (size_t)bytes) : p;
    }
    static void *ow_np_realloc(void *ctx, void *p, size_t n)
    {
        (void)ctx;
        return ow_resize(p, (int64_t)n);
    }
    static void ow_np_free(void *ctx, void *p, size_t n) { (void)ctx; (void)n; ow_free(p); }
    /* What tells numpy how to free and resize the memory of arrays that own blocks of ow_alloc. */
    static PyDataMem_Handler ow_np_handler = {
        "opwise", 1, {NULL, ow_np_malloc, ow_np_calloc, ow_np_realloc, ow_np_free}};
    static PyObject *ow_np_capsule;
    /* An array over `data`; own: it frees the memory, a block of ow_alloc, when it dies. */
    static PyObject *ow_wrap(int typenum, int nd, npy_intp *shape, npy_intp *strides, void *data,
                             int own)
    {
        PyObject *a = PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(typenum), nd, shape,
                                           strides, data, NPY_ARRAY_WRITEABLE, NULL);
        if (a == NULL || !own)
            return a;
        if (ow_np_capsule == NULL)
            ow_np_capsule = PyCapsule_New(&ow_np_handler, "mem_handler", NULL);
        if (ow_np_capsule == NULL) {
            Py_DECREF(a);
            return NULL;
        }
        Py_INCREF(ow_np_capsule);
        ((PyArrayObject_fields *)a)->mem_handler = ow_np_capsule;
        PyArray_ENABLEFLAGS((PyArrayObject *)a, NPY_ARRAY_OWNDATA);
        return a;
    }
    """
    object ow_wrap(int, int, cnp.npy_intp *, cnp.npy_intp *, void *, int)

cdef extern from "draws.h":
    int OW_TWISTER_WORDS, OW_MOST_TRIALS, OW_DRAW_BLOCK
    ctypedef struct ow_twister:
        int32_t pos
    ctypedef struct ow_generator:
        ow_twister *twister
        int *has_gauss
        double *gauss
    ctypedef struct ow_generator_state:
        pass
    void ow_generator_save(const ow_generator *, ow_generator_state *) nogil
    void ow_generator_restore(const ow_generator *, const ow_generator_state *) nogil
    void ow_draw_uniform(const ow_generator *, const ow_slot *, double, double) nogil
    void ow_draw_normal(const ow_generator *, const ow_slot *, double, double, double *) nogil
    double ow_parameter(const ow_slot *) nogil
    int ow_are_probabilities(const ow_slot *) nogil
    void ow_draw_binomial(const ow_generator *, const ow_slot *, int64_t, const ow_slot *) nogil

cdef extern from *:
    """
    typedef struct NumpyBitgen {
        void *state, *next_uint64, *next_uint32, *next_double, *next_raw;
    } NumpyBitgen;
    /* numpy.random.RandomState (numpy/random/mtrand.pyx) up to what its numbers depend on */
    typedef struct RandomStateObject {
        PyObject_HEAD
        void *methods;
        PyObject *bit_generator;
        NumpyBitgen bitgen;
        void *aug_bitgen;
        int has_gauss;
        double gauss;
    } RandomStateObject;
    """
    ctypedef struct NumpyBitgen:
        void *state
        void *next_double
    ctypedef struct RandomStateObject:
        void *bit_generator
        NumpyBitgen bitgen
        void *aug_bitgen
        int has_gauss
        double gauss

cdef extern from "simd.h":
    ctypedef struct ow_simd:
        const char *name
        const ow_reducer *reducers
        int reducer_count
        const ow_loop_row *float_loops
        int float_loop_count
        int products
    const ow_simd *ow_kernels
    int ow_use_kernels(const char *)
    const char *ow_processor_vectors()
    ctypedef int (*ow_sort_in_place_fn)(void *items, Py_ssize_t n, void *array) noexcept nogil
    ow_sort_in_place_fn ow_sort_in_place[2]

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArray_ArrFuncs:
        ow_sort_in_place_fn sort[3]

    PyArray_ArrFuncs *PyDataType_GetArrFuncs(cnp.dtype dtype)

cdef extern from "code.h":
    int OW_MAXREG, OW_CHUNK

cdef extern from "maincalls.h":
    int64_t ow_main_called() noexcept
    int ow_main_is_called() noexcept
    void ow_main_watch(unsigned long thread) noexcept
    bint ow_main_enter(unsigned long thread, int64_t now) noexcept
    void ow_main_leave(int64_t now) noexcept

cdef extern from "clock.h":
    void ow_clock_begin()
    void ow_clock_calibrate()
    int64_t ow_clock() noexcept nogil

cdef extern from "timing.h":
    int OW_BUCKETS, OW_KEPT
    int64_t ow_timer_ns
    ctypedef struct ow_timing:
        int64_t nsteps
        ow_times *steps
        int64_t **histograms
        ow_call *kept
        int64_t *rows
        int64_t *now
    ow_timing *ow_timing_new(int64_t) noexcept nogil
    void ow_timing_free(ow_timing *) noexcept nogil
    void ow_timing_forget(ow_timing *) noexcept nogil
    int ow_timing_move(ow_timing *, ow_times *) noexcept nogil
    void ow_timer_measure() noexcept nogil
    void ow_note(ow_timing *, int64_t, int64_t) noexcept nogil
    void ow_timing_begin(ow_timing *) noexcept nogil
    int ow_keep(ow_timing *, int64_t, int64_t, int64_t) noexcept nogil

cdef extern from "loops.h":
    const ow_loop_row *ow_loop_rows
    int ow_loop_count

cdef extern from "borrowed.h":
    ctypedef struct ow_borrowed:
        const char *name
        void **pointer
    const ow_borrowed *ow_borrowed_rows
    int OW_BORROWED

cdef extern from "buffers.h" nogil:
    bint ow_have_buffers()

cdef extern from "<fenv.h>" nogil:
    ctypedef struct fenv_t:
        pass
    int fegetenv(fenv_t *)
    int fesetenv(const fenv_t *)

cdef extern from "<dlfcn.h>" nogil:
    void *dlopen(const char *, int)
    void *dlsym(void *, const char *)
    char *dlerror()
    int dlclose(void *)
    int RTLD_NOW, RTLD_LOCAL

cdef extern from "probe.h" nogil:
    int OW_PROBE_SLACK
    double ow_probe_stream(char *, int64_t, int, double)
    double ow_probe_rate(int, int, int, double)
    int64_t ow_second_level_cache()

ctypedef int (*ow_push)(const char *) noexcept nogil
ctypedef int (*ow_pop)() noexcept nogil
