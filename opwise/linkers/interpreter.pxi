# The interpreter of elementwise programs. Included by opwise_c.pyx.

@cython.final
cdef class Code:
    """A Composite as instructions over built-in loops, for the interpreter.

    itemsizes: bytes of each register, the operands first. results: the registers that are outputs.
    reducers: indices of the reductions that fold results into accumulators side by side, a run of
    them into one, and accumulators; empty: there is no reduction. instructions: (address of the
    loop, output register, input registers).
    """

    cdef ow_code code

    def __cinit__(self, int nin, list itemsizes, list results, list instructions,
                  tuple reducers=()):
        cdef int i, j
        cdef ow_code *c = &self.code
        c.reducer = c.run = c.join = NULL
        if reducers:
            rows, run, join = reducers
            c.reducer = &ow_kernels.reducers[<int>rows]
            c.run = &ow_kernels.reducers[<int>run]
            c.join = &ow_kernels.reducers[<int>join]
        c.nin, c.nout, c.nreg, c.ninstr = nin, len(results), len(itemsizes), len(instructions)
        c.itemsize = <int32_t *>malloc(sizeof(int32_t) * max(1, c.nreg))
        c.results = <int32_t *>malloc(sizeof(int32_t) * max(1, c.nout))
        c.instr = <ow_instr *>calloc(max(1, c.ninstr), sizeof(ow_instr))
        if not (c.itemsize and c.results and c.instr):
            raise MemoryError()
        c.chunk = OW_CHUNK if max(itemsizes, default=0) <= 8 else OW_CHUNK // 2
        for i in range(c.nreg):
            c.itemsize[i] = itemsizes[i]
        for i in range(c.nout):
            c.results[i] = results[i]
        for i in range(c.ninstr):
            address, out, args = instructions[i]
            c.instr[i].fn = <ow_chunk_fn><uintptr_t>address
            c.instr[i].out = out
            c.instr[i].nin = len(args)
            for j in range(len(args)):
                c.instr[i].in_[j] = args[j]

    def __dealloc__(self):
        free(self.code.itemsize)
        free(self.code.results)
        free(self.code.instr)

    @property
    def address(self):
        return <uintptr_t>&self.code


INTERPRET = <uintptr_t>ow_interpreter
