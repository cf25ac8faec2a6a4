// A device that is simulated on the CPU, for kernels compiled as C++: blocks one after the other, the
// threads of a block as fibers that wait for each other at barriers.
#include <ucontext.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline

#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static
#define OW_SHARED
#define OW_UNROLL

struct Three {
    unsigned x, y, z;
};
Three threadIdx, blockIdx, blockDim, gridDim;
alignas(16) unsigned char ow_shared[232448];

// --- fibers ------------------------------------------------------------------------------------

namespace device {

constexpr size_t STACK = 65536;

struct Fiber {
    ucontext_t context;
    unsigned x, y;
    bool done;
    long long passed[2];  // exchanged values, by turns
    unsigned turn;
};

struct Barrier {
    unsigned arrived, round;
};

std::vector<Fiber> fibers;
// pages are there when they are written to: every library has stacks of its own
char *stacks;
ucontext_t scheduler;
Fiber *now;
unsigned count;
Barrier block, warps[32];
void (*call)(void **);
void **arguments;

void enter()
{
    call(arguments);
    now->done = true;
    swapcontext(&now->context, &scheduler);
}

void wait(Barrier &barrier, unsigned size)
{
    if (++barrier.arrived == size) {
        barrier.arrived = 0;
        barrier.round++;
        return;
    }
    for (unsigned round = barrier.round; round == barrier.round;) {
        Fiber *self = now;
        swapcontext(&self->context, &scheduler);
    }
}

inline unsigned self() { return (unsigned)(now - fibers.data()); }

inline void wait_warp()
{
    unsigned warp = self() / 32, left = count - warp * 32;
    wait(warps[warp], left < 32 ? left : 32);
}

// Runs one block; order: 0 starts with the first thread, 1 with the last. Returns whether it ended:
// not where some thread waits for one that has ended.
bool run_block(int order)
{
    count = blockDim.x * blockDim.y;
    fibers.resize(1024);
    if (!stacks)
        stacks = (char *)malloc(1024 * STACK);
    block = {0, 0};
    memset(warps, 0, sizeof warps);
    for (unsigned k = 0; k < count; k++) {
        Fiber &f = fibers[k];
        f.x = k % blockDim.x;
        f.y = k / blockDim.x;
        f.done = false;
        f.turn = 0;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = &stacks[k * STACK];
        f.context.uc_stack.ss_size = STACK;
        f.context.uc_link = &scheduler;
        makecontext(&f.context, enter, 0);
    }
    for (unsigned done = 0, idle = 0; done < count;) {
        unsigned before = done, arrived = block.arrived + block.round;
        for (unsigned i = 0; i < 32; i++)
            arrived += warps[i].arrived + warps[i].round;
        for (unsigned i = 0; i < count; i++) {
            Fiber &f = fibers[order ? count - 1 - i : i];
            if (f.done)
                continue;
            now = &f;
            threadIdx = {f.x, f.y, 0};
            swapcontext(&scheduler, &f.context);
            done += f.done;
        }
        unsigned after = block.arrived + block.round;
        for (unsigned i = 0; i < 32; i++)
            after += warps[i].arrived + warps[i].round;
        idle = before == done && arrived == after ? idle + 1 : 0;
        if (idle > 2)
            return false;
    }
    return true;
}

}  // namespace device

// --- what kernels call -------------------------------------------------------------------------

inline void __syncthreads()
{
    device::wait(device::block, device::count);
    threadIdx = {device::now->x, device::now->y, 0};
}

template <typename T> inline T __shfl_xor_sync(unsigned mask, T value, int w)
{
    (void)mask;
    device::Fiber &f = *device::now;
    unsigned turn = f.turn++ & 1, at = device::self();
    memcpy(&f.passed[turn], &value, sizeof value);
    device::wait_warp();
    threadIdx = {f.x, f.y, 0};
    T result;
    memcpy(&result, &device::fibers[at ^ (unsigned)w].passed[turn], sizeof result);
    return result;
}

inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}

template <typename T> inline T atomicAdd(T *to, T value)
{
    T old = *to;
    *to = old + value;
    return old;
}

template <typename T> inline T atomicMax(T *to, T value)
{
    T old = *to;
    if (value > old)
        *to = value;
    return old;
}

// functions of CUDA that C has not; the tests put scipy's here
extern "C" double (*sim_functions[5])(double);
double (*sim_functions[5])(double);
#define SIM_FUNCTION(k, name)                                     \
    inline double name(double x) { return sim_functions[k](x); }  \
    inline float name##f(float x) { return (float)sim_functions[k](x); }
SIM_FUNCTION(0, erfcx)
SIM_FUNCTION(1, erfinv)
SIM_FUNCTION(2, erfcinv)
SIM_FUNCTION(3, cyl_bessel_i0)
SIM_FUNCTION(4, cyl_bessel_i1)

static inline float ow_from_f16(unsigned short h)
{
    unsigned sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, rest = h & 1023u, bits;
    float x;
    if (exponent == 0) {
        x = (float)rest * 5.9604644775390625e-8f;
        return sign ? -x : x;
    }
    bits = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | rest << 13;
    memcpy(&x, &bits, 4);
    return x;
}

// rounds to the nearest, ties to even
static inline unsigned short sim_half(double x)
{
    unsigned short sign = std::signbit(x) ? 0x8000 : 0;
    double size = std::fabs(x);
    if (x != x)
        return 0x7e00;
    if (size >= 65520.0)
        return sign | 0x7c00;
    int e;
    std::frexp(size, &e);
    e = e < -13 ? -13 : e;
    double units = std::nearbyint(std::ldexp(size, 11 - e));
    if (units >= 2048.0) {
        units /= 2;
        e++;
    }
    if (units < 1024.0)
        return sign | (unsigned short)units;
    return sign | (unsigned short)((e + 14) << 10 | ((unsigned)units & 1023));
}
static inline unsigned short ow_to_f16(float x) { return sim_half(x); }
static inline float ow_round_f16(double x) { return ow_from_f16(sim_half(x)); }

// --- what is touched ---------------------------------------------------------------------------

// An array that notes which sectors of 32 bytes a warp touches at once: those of the k-th elements
// that its lanes ask for. Lanes that the end of an array leaves out ask for none until the block
// ends.
namespace device {

typedef std::tuple<const void *, unsigned, unsigned, unsigned> Access;  // array, block, warp, k
std::map<Access, std::set<size_t>> touched;
std::map<std::tuple<const void *, unsigned, unsigned>, unsigned> asked;

inline void touch(const void *array, const void *element)
{
    unsigned thread = threadIdx.x + threadIdx.y * blockDim.x;
    unsigned k = asked[{array, blockIdx.x, thread}]++;
    touched[{array, blockIdx.x, thread / 32, k}].insert((size_t)element / 32);
}

}  // namespace device

template <typename T> struct Watched {
    T *start;
    T &operator[](long long i) const
    {
        device::touch(start, start + i);
        return start[i];
    }
};

// Returns how many sectors were touched since the last call; *accesses: by how many warps at once.
extern "C" unsigned long long sectors_touched(unsigned long long *accesses)
{
    unsigned long long sectors = 0;
    for (const auto &access : device::touched)
        sectors += access.second.size();
    *accesses = device::touched.size();
    device::touched.clear();
    device::asked.clear();
    return sectors;
}

// --- launches ----------------------------------------------------------------------------------

// Returns 0, or 1 where threads of a block wait for each other forever.
extern "C" int simulate(void (*call)(void **), void **arguments, unsigned grid, unsigned x,
                        unsigned y, int order, int barriers)
{
    gridDim = {grid, 1, 1};
    blockDim = {x, y, 1};
    device::call = call;
    device::arguments = arguments;
    for (unsigned b = 0; b < grid; b++) {
        blockIdx = {order ? grid - 1 - b : b, 0, 0};
        if (barriers) {
            if (!device::run_block(order))
                return 1;
            continue;
        }
        for (unsigned k = 0; k < x * y; k++) {
            unsigned at = order ? x * y - 1 - k : k;
            threadIdx = {at % x, at / x, 0};
            call(arguments);
        }
    }
    return 0;
}
