/* The gradient of a convolution by its kernels.
 * Each element is the sum, over all places of all images, of a result's gradient times what the
 * element meets there. There are three algorithms:
 * - direct: over lines (conv_lines.h): an element of the kernel is a shifted line, and sums are dot
 * products of
 * lines, of which a tile of 4 outputs by 6 elements stays in registers. Nothing is gathered, but
 * what
 * lies between lines is multiplied too.
 * - patches: as products; a block of the matrix of what the kernel meets is written, a row for each
 * place, and
 * multiplied. This suits images that are hardly longer than the kernel.
 * - winograd: see winograd_tiles.h. Sums are cut by a rule that does not know how many threads
 * there are, and the parts are added in order. */
#ifndef OW_CONV_KERNELS_H
#define OW_CONV_KERNELS_H

#include "conv_lines.h"
#include "step_params.h"

/* Terms of a dot product for which lines of all rows of a tile stay in the first cache. */
#define OW_CONV_LINE 2048
/* Elements of the images' part of a block of lines, which stays in the second cache. */
#define OW_CONV_BLOCK (1 << 17)
/* Enough units of work for many threads. */
#define OW_CONV_UNITS 32
/* The most memory for parts of sums. */
#define OW_CONV_PARTS_BYTES (32 << 20)

typedef struct ow_kernel_sums {
    const ow_conv *c;
    ow_planes planes;
    int64_t at[5];            /* bytes between elements of the gradient by the result */
    int64_t images, lines;    /* of a block */
    int64_t blocks, in_image; /* how many there are, and in one image */
    int in_place;             /* whether the operands are lines as they are */
    int joined;          /* whether images follow each other without a gap: one line of terms */
    int64_t sums;        /* into how many parts the terms are cut */
    int64_t cuts, width; /* parts of the elements of a group, and their channels or elements */
    int64_t groups;      /* of a unit; more than one only if they are not cut */
    int64_t group_units;
    char *parts; /* the results of each part of the terms, or NULL for only one */
    int failed;
} ow_kernel_sums;

static int64_t ow_at_least(int64_t n, int64_t least) { return n > least ? n : least; }

/* Memory of one unit, or NULL. */
static char *ow_kernel_memory(ow_kernel_sums *k, int64_t bytes)
{
    char *memory = ow_alloc(bytes);
    if (memory == NULL)
        __atomic_store_n(&k->failed, 1, __ATOMIC_RELAXED);
    return memory;
}

typedef struct ow_kernel_unit {
    int64_t part;         /* of the terms */
    int64_t group, end;   /* groups */
    int64_t first, count; /* channels or elements of a group */
    int64_t block, last;  /* of the terms */
} ow_kernel_unit;

static ow_kernel_unit ow_kernel_unit_of(const ow_kernel_sums *k, int64_t unit, int64_t total)
{
    ow_kernel_unit u;
    const int64_t cut = unit % k->cuts, groups = unit / k->cuts % k->group_units;
    u.part = unit / k->cuts / k->group_units;
    u.group = groups * k->groups;
    u.end = ow_at_most(u.group + k->groups, k->c->groups);
    u.first = cut * k->width;
    u.count = ow_at_most(k->width, total - u.first);
    u.block = ow_chunk_range(u.part, k->sums, k->blocks, 1, &u.last);
    return u;
}

static char *ow_kernel_results(const ow_kernel_sums *k, int64_t part)
{
    const ow_conv *c = k->c;
    const int64_t bytes = c->groups * c->outputs * c->elements * (c->f64 ? 8 : 4);
    return k->parts ? k->parts + part * bytes : c->kernels;
}

/* --- over lines ------------------------------------------------------------------------------- */

static void ow_kernels_by_lines(void *arg, int64_t unit)
{
    ow_kernel_sums *k = arg;
    const ow_conv *c = k->c;
    const ow_planes *p = &k->planes;
    const ow_kernel_unit u = ow_kernel_unit_of(k, unit, c->channels);
    const int64_t item = c->f64 ? 8 : 4, lanes = c->wide / 2, taps = c->elements / c->channels;
    const int64_t wide = p->image.wide, more = p->reach / wide + 1;
    const int64_t whole = p->image.count * p->image.across;
    const int64_t result = k->joined ? whole * wide : ow_round_up(k->lines * wide, lanes);
    const int64_t plane =
        k->joined ? whole * wide : ow_round_up((k->lines + more) * wide + lanes, lanes);
    const int64_t behind = k->joined ? p->reach + lanes : 0;
    /* different channels begin in different sets of the cache */
    const int64_t output = ow_round_up(k->images * result + behind, lanes) + lanes;
    const int64_t channel = ow_round_up(k->images * p->phases * plane + behind, lanes) + lanes;
    const int64_t columns = u.count * taps;
    const int64_t copies = k->in_place ? 0 : (u.count * channel + c->outputs * output) * item;
    char *memory = ow_kernel_memory(k, copies + columns * 8);
    if (memory == NULL)
        return;
    char *g = memory + u.count * channel * item;
    int64_t *offset = (int64_t *)(memory + copies);
    for (int64_t j = 0; j < columns; j++) {
        int64_t shift;
        const int64_t phase = ow_planes_tap(c, p, j % taps, &shift);
        offset[j] = k->in_place ? j * c->at[1] / item : j / taps * channel + phase * plane + shift;
    }
    for (int64_t group = u.group; group < u.end; group++) {
        char *z = ow_kernel_results(k, u.part) +
                  (group * c->outputs * c->elements + u.first * taps) * item;
        for (int64_t block = u.block; block < u.last; block++) {
            const int64_t b = block / k->in_image * k->images,
                          line = block % k->in_image * k->lines;
            const int64_t images = ow_at_most(k->images, c->batch - b);
            const int64_t lines = ow_at_most(k->lines, p->lines - line);
            ow_line_dots q = {
                images, 0,      memory, g,           offset, p->phases * plane,
                result, output, z,      c->elements, 0,      taps == 1 && c->outputs <= u.count};
            if (k->in_place) {
                q.x = c->pixels + b * c->at[0] + (group * c->channels + u.first) * c->at[1];
                q.g = c->results + b * k->at[0] + group * c->outputs * k->at[1];
                q.x += line * wide * item;
                q.g += line * wide * item;
                q.x_image = c->at[0] / item;
                q.g_image = k->at[0] / item;
                q.g_row = k->at[1] / item;
            }
            for (int64_t i = 0; i < u.count && !k->in_place; i++) {
                char *image =
                    c->pixels + b * c->at[0] + (group * c->channels + u.first + i) * c->at[1];
                char *to = memory + i * channel * item;
                for (int64_t n = 0; n < images; n++, to += p->phases * plane * item)
                    ow_lines_read(c->f64, &p->image, image + n * c->at[0], line,
                                  k->joined ? whole : lines + more, to, plane);
                memset(to, 0, (size_t)(behind * item));
            }
            for (int64_t i = 0; i < c->outputs && !k->in_place; i++) {
                const char *top = c->results + b * k->at[0] + (group * c->outputs + i) * k->at[1];
                char *to = g + i * output * item;
                for (int64_t n = 0; n < images; n++, to += result * item)
                    ow_lines_read(c->f64, &p->result, top + n * k->at[0], line,
                                  k->joined ? whole : lines, to, result);
                memset(to, 0, (size_t)(behind * item));
            }
            int64_t terms = (lines - 1) * wide + c->out[2];
            if (k->joined) {
                terms += (images - 1) * whole * wide;
                q.images = 1;
            }
            terms = (terms + lanes - 1) / lanes * lanes;
            const char *x = q.x, *top = q.g;
            const int64_t most = taps == 1 ? OW_CONV_LINE / 2 : OW_CONV_LINE;
            const int64_t pieces = (terms + most - 1) / most;
            for (int64_t piece = 0; piece < pieces; piece++) {
                int64_t end;
                const int64_t first = ow_chunk_range(piece, pieces, terms, lanes, &end);
                q.terms = end - first;
                q.x = x + first * item;
                q.g = top + first * item;
                q.add = piece > 0 || block > u.block;
                ow_kernels->dots[c->f64](&q, c->outputs, columns);
            }
        }
    }
    ow_free(memory);
}

/* --- as products ------------------------------------------------------------------------------ */

/* Elements of a kernel that lie side by side in one row of it and in one panel of a block. */
typedef struct ow_kernel_span {
    int64_t channel;   /* bytes to it */
    int64_t offset[3]; /* of the first element, along each axis */
    int64_t n, column;
} ow_kernel_span;

static int64_t ow_kernel_runs(const ow_conv *c, int64_t first, int64_t end, ow_kernel_span *runs)
{
    int64_t count = 0;
    for (int64_t e = first; e < end;) {
        ow_kernel_span *r = &runs[count++];
        const ow_tap t = ow_conv_tap(c, e);
        r->channel = t.channel * c->at[1];
        memcpy(r->offset, t.offset, sizeof(r->offset));
        r->column = e - first;
        r->n = ow_at_most(c->kernel[2] - e % c->kernel[2], c->wide - r->column % c->wide);
        r->n = ow_at_most(r->n, end - e);
        e += r->n;
    }
    return count;
}

#define OW_KERNEL_ROW(T)                                                                           \
    /* Write what the elements of a kernel meet at one place. */                                   \
    static void ow_kernel_row_##T(const ow_conv *c, const ow_kernel_span *runs, int64_t count,     \
                                  const char *image, const int64_t *at, T *to, int64_t panel)      \
    {                                                                                              \
        const int64_t step = c->flip ? -c->dilation[2] : c->dilation[2], apart = step * c->at[4];  \
        for (const ow_kernel_span *r = runs; r < runs + count; r++) {                              \
            T *z = to + r->column / c->wide * panel + r->column % c->wide;                         \
            const int64_t i = at[0] + r->offset[0], j = at[1] + r->offset[1];                      \
            const int64_t x = at[2] + r->offset[2], last = x + (r->n - 1) * step;                  \
            const int met = i >= 0 && i < c->image[0] && j >= 0 && j < c->image[1];                \
            const char *row = image + r->channel + i * c->at[2] + j * c->at[3] + x * c->at[4];     \
            const int inside =                                                                     \
                met && x >= 0 && x < c->image[2] && last >= 0 && last < c->image[2];               \
            if (inside && apart == sizeof(T))                                                      \
                ow_lines_copy_##T(z, sizeof(T), (const T *)row, sizeof(T), r->n);                  \
            else if (inside && apart == -(int64_t)sizeof(T))                                       \
                for (int64_t k = 0; k < r->n; k++)                                                 \
                    z[k] = ((const T *)row)[-k];                                                   \
            else if (inside)                                                                       \
                for (int64_t k = 0; k < r->n; k++)                                                 \
                    z[k] = *(const T *)(row + k * apart);                                          \
            else                                                                                   \
                for (int64_t k = 0; k < r->n; k++) {                                               \
                    const int64_t one = x + k * step;                                              \
                    z[k] =                                                                         \
                        met && one >= 0 && one < c->image[2] ? *(const T *)(row + k * apart) : 0;  \
                }                                                                                  \
        }                                                                                          \
    }
OW_KERNEL_ROW(float)
OW_KERNEL_ROW(double)

static void ow_kernels_by_products(void *arg, int64_t unit)
{
    ow_kernel_sums *k = arg;
    const ow_conv *c = k->c;
    const ow_kernel_unit u = ow_kernel_unit_of(k, unit, c->elements);
    const int64_t item = c->f64 ? 8 : 4, w = c->wide, panel = OW_CONV_TERMS * w;
    const int64_t bytes = (u.count + w - 1) / w * panel * item,
                  top = c->outputs * OW_CONV_TERMS * item;
    char *packed = ow_kernel_memory(k, bytes + top + u.count * (int64_t)sizeof(ow_kernel_span));
    if (packed == NULL)
        return;
    char *g = packed + bytes;
    ow_kernel_span *runs = (ow_kernel_span *)(g + top);
    const int64_t count = ow_kernel_runs(c, u.first, u.first + u.count, runs);
    const int64_t terms = c->batch * c->places;
    for (int64_t group = u.group; group < u.end; group++) {
        char *z =
            ow_kernel_results(k, u.part) + (group * c->outputs * c->elements + u.first) * item;
        for (int64_t block = u.block; block < u.last; block++) {
            const int64_t first = block * OW_CONV_TERMS,
                          n = ow_at_most(OW_CONV_TERMS, terms - first);
            int64_t of[OW_CONV_TERMS];
            for (int64_t i = 0; i < n; i++) {
                const int64_t b = (first + i) / c->places, place = (first + i) % c->places;
                const int64_t x = place % c->out[2], y = place / c->out[2] % c->out[1];
                const int64_t at0 = place / c->out[2] / c->out[1];
                const int64_t at[3] = {at0 * c->stride[0], y * c->stride[1], x * c->stride[2]};
                const char *image = c->pixels + b * c->at[0] + group * c->channels * c->at[1];
                of[i] = b * k->at[0] + at0 * k->at[2] + y * k->at[3] + x * k->at[4];
                if (c->f64)
                    ow_kernel_row_double(c, runs, count, image, at, (double *)packed + i * w,
                                         n * w);
                else
                    ow_kernel_row_float(c, runs, count, image, at, (float *)packed + i * w, n * w);
                const int64_t used = u.count % w;
                if (used) /* the last panel is read as a whole */
                    memset(packed + (u.count / w * n * w + i * w + used) * item, 0,
                           (size_t)((w - used) * item));
            }
            for (int64_t o = 0; o < c->outputs; o++) {
                const char *from = c->results + (group * c->outputs + o) * k->at[1];
                if (c->f64)
                    for (int64_t i = 0; i < n; i++)
                        ((double *)g)[o * OW_CONV_TERMS + i] = *(const double *)(from + of[i]);
                else
                    for (int64_t i = 0; i < n; i++)
                        ((float *)g)[o * OW_CONV_TERMS + i] = *(const float *)(from + of[i]);
            }
            const ow_product q = {
                c->outputs, u.count, n,           1.0,           block > u.block ? 1.0 : 0.0,
                g,          NULL,    z,           OW_CONV_TERMS, 1,
                0,          0,       c->elements, packed};
            ow_kernels->gemm[c->f64](&q, 0, q.m, 0, q.n);
        }
    }
    ow_free(packed);
}

/* --- by Winograd's algorithm ------------------------------------------------------------------ */

/* Channels and outputs whose sums one unit keeps in the second cache; tiles of a block. */
#define OW_WINOGRAD_SIDE 128
#define OW_WINOGRAD_TILES 64

typedef struct ow_winograd_kernels_job {
    ow_kernel_sums sums;
    ow_winograd w;
    ow_conv top;
    int64_t most;              /* tiles of a block */
    int64_t channels, outputs; /* of a unit */
    int64_t across;            /* units along the channels */
    int64_t units;             /* of one group */
} ow_winograd_kernels_job;

static void ow_kernels_by_winograd(void *arg, int64_t unit)
{
    ow_winograd_kernels_job *j = arg;
    ow_kernel_sums *k = &j->sums;
    const ow_conv *c = k->c;
    const ow_kernel_unit u = ow_kernel_unit_of(k, unit, j->units);
    const int64_t lanes = c->wide / 2, high = ow_round_up(j->outputs, lanes),
                  wide = ow_round_up(j->channels, lanes);
    /* as winograd_tiles.h lays them out: sums, tiles of both operands, rows that are read */
    const int64_t floats = 36 * (j->outputs * wide + j->most * (high + wide) + 48) +
                           12 * (4 * j->w.across + 2) * lanes;
    char *memory = ow_kernel_memory(k, floats * 4);
    if (memory == NULL)
        return;
    for (int64_t group = u.group; group < u.end; group++)
        for (int64_t i = u.first; i < u.first + u.count; i++) {
            const int64_t channel = i % j->across * j->channels,
                          output = i / j->across * j->outputs;
            ow_winograd_sums q = {&j->w,   group,
                                  channel, ow_at_most(j->channels, c->channels - channel),
                                  output,  ow_at_most(j->outputs, c->outputs - output),
                                  0,       0,
                                  j->most, (float *)ow_kernel_results(k, u.part)};
            q.wide = ow_round_up(q.channels, lanes);
            q.high = ow_round_up(q.outputs, lanes);
            ow_kernels->winograd_sum(&q, u.block * j->most,
                                     ow_at_most(u.last * j->most, j->w.tiles), memory);
        }
    ow_free(memory);
}

/* --- the step --------------------------------------------------------------------------------- */

/* Cut the terms, at most `most` times, and the elements of a group, into at most `cuts` parts of a
 * multiple of `each` of `items`. */
static void ow_kernel_cut(ow_kernel_sums *k, int64_t items, int64_t each, int64_t widest)
{
    const ow_conv *c = k->c;
    const double terms = (double)c->batch * (double)c->places;
    const double size = (double)c->groups * (double)c->outputs * (double)c->elements;
    const double ns = size * terms * (c->f64 ? 7e-2 : 3.5e-2);
    const int64_t cuts = (items + each - 1) / each, units = ow_mul_size(c->groups, cuts);
    double sums = (double)OW_CONV_UNITS / (double)units, most = terms / 256;
    sums = sums < ns / 5e4 ? sums : ns / 5e4;
    sums = sums > ns / OW_LONGEST_CHUNK_NS / (double)units
               ? sums
               : ns / OW_LONGEST_CHUNK_NS / (double)units;
    most = most < OW_CONV_PARTS_BYTES / 8 / size ? most : OW_CONV_PARTS_BYTES / 8 / size;
    sums = sums < most ? sums : most;
    k->sums = sums < 1 ? 1 : ow_at_most((int64_t)sums, k->blocks);
    const int64_t wanted = (ow_chunks(ns) + k->sums - 1) / k->sums;
    int64_t narrow = ow_at_most((wanted + c->groups - 1) / c->groups, cuts);
    narrow = ow_at_least(narrow, (items + widest - 1) / widest);
    k->width = ((items + narrow - 1) / narrow + each - 1) / each * each;
    k->width = ow_at_most(k->width, items);
    k->cuts = (items + k->width - 1) / k->width;
    k->groups = k->cuts > 1 ? 1 : ow_at_least(c->groups / ow_at_least(wanted, 1), 1);
    k->group_units = (c->groups + k->groups - 1) / k->groups;
}

typedef struct ow_kernel_adding {
    const char *parts;
    char *to;
    int64_t n, sums, chunks;
    int f64;
} ow_kernel_adding;

static void ow_kernel_add(void *arg, int64_t chunk)
{
    const ow_kernel_adding *a = arg;
    int64_t end, first = ow_chunk_range(chunk, a->chunks, a->n, 16, &end);
    for (; first < end; first += OW_CONV_LINE) {
        const int64_t n = ow_at_most(OW_CONV_LINE, end - first);
        for (int64_t s = 0; s < a->sums; s++)
            if (a->f64) {
                const double *from = (const double *)a->parts + s * a->n + first;
                double *restrict to = (double *)a->to + first;
                for (int64_t i = 0; i < n; i++)
                    to[i] = s ? to[i] + from[i] : from[i];
            } else {
                const float *from = (const float *)a->parts + s * a->n + first;
                float *restrict to = (float *)a->to + first;
                for (int64_t i = 0; i < n; i++)
                    to[i] = s ? to[i] + from[i] : from[i];
            }
    }
}

/* Run all units and add up the parts of the sums. */
static int ow_kernel_sum_up(ow_step *s, ow_kernel_sums *k, ow_task fn)
{
    const ow_conv *c = k->c;
    const int64_t n = c->groups * c->outputs * c->elements, item = c->f64 ? 8 : 4;
    k->parts = NULL;
    if (k->sums > 1 && (k->parts = ow_alloc(k->sums * n * item)) == NULL)
        k->sums = 1;
    ow_parallel(fn, k, k->sums * k->group_units * k->cuts);
    if (k->parts) {
        ow_kernel_adding a = {k->parts, c->kernels, n, k->sums, 1, c->f64};
        a.chunks = ow_chunks((double)n * (double)k->sums * (c->f64 ? 0.4 : 0.2));
        ow_parallel(ow_kernel_add, &a, a.chunks);
        ow_free(k->parts);
    }
    if (k->failed)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate blocks of a convolution");
    return OW_OK;
}

static int ow_kernels_run_products(ow_step *s, ow_kernel_sums *k)
{
    const ow_conv *c = k->c;
    k->blocks = (c->batch * c->places + OW_CONV_TERMS - 1) / OW_CONV_TERMS;
    ow_kernel_cut(k, c->elements, c->wide, c->most);
    return ow_kernel_sum_up(s, k, ow_kernels_by_products);
}

/* Whether kernels have one element, and planes of both operands are single lines of whole
 * vectors. */
static int ow_kernels_in_place(const ow_conv *c, const int64_t *at)
{
    const int64_t item = c->f64 ? 8 : 4, lanes = c->wide / 2;
    int64_t apart = item;
    for (int d = 2; d >= 0; d--) {
        if (c->kernel[d] != 1 || c->stride[d] != 1 || c->pad[d] != 0 || c->out[d] != c->image[d])
            return 0;
        if (c->image[d] != 1 && (c->at[2 + d] != apart || at[2 + d] != apart))
            return 0;
        apart *= c->image[d];
    }
    for (int d = 0; d < 2; d++)
        if (c->at[d] % item || at[d] % item)
            return 0;
    return c->places % lanes == 0;
}

static int ow_kernels_run_lines(ow_step *s, ow_kernel_sums *k)
{
    const ow_conv *c = k->c;
    const ow_planes *p = &k->planes;
    const int64_t taps = c->elements / c->channels;
    const int64_t longest = ow_at_most(OW_CONV_LINE, ow_mul_size(c->batch, p->places));
    const int64_t widest = ow_at_least(OW_CONV_BLOCK / longest / p->phases, 1);
    const int64_t each = ow_at_most(ow_at_most(ow_at_least(128 / taps, 4), c->channels), widest);
    const int64_t room = OW_CONV_LINE;
    k->in_place = ow_kernels_in_place(c, k->at);
    if (p->places <= room) {
        const int64_t lanes = c->wide / 2,
                      joined = p->image.count * p->image.across * p->image.wide;
        /* going to the next image takes as long as a vector of terms */
        k->joined =
            !k->in_place && p->phases == 1 && joined < ow_round_up(p->places, lanes) + lanes;
        k->lines = p->lines;
        k->images = ow_at_most(ow_at_least(room / (k->joined ? joined : p->places), 1), c->batch);
    } else {
        k->images = 1;
        /* what the kernel reaches beyond a block is copied twice */
        const int64_t least = 3 * (p->reach / p->image.wide);
        k->lines = ow_at_least(ow_at_least(room / p->image.wide, 1), least);
        k->in_image = (p->lines + k->lines - 1) / k->lines;
        k->lines = (p->lines + k->in_image - 1) / k->in_image;
        /* blocks of operands in place end with whole vectors */
        while (k->in_place && k->lines < p->lines && k->lines * p->image.wide % (c->wide / 2))
            k->lines++;
    }
    k->in_image = (p->lines + k->lines - 1) / k->lines;
    k->blocks = (c->batch + k->images - 1) / k->images * k->in_image;
    ow_kernel_cut(k, c->channels, each, widest / each * each);
    return ow_kernel_sum_up(s, k, ow_kernels_by_lines);
}

static int ow_kernels_run_winograd(ow_step *s, const ow_kernel_sums *given)
{
    ow_winograd_kernels_job j = {.sums = *given, .top = *given->c};
    ow_kernel_sums *k = &j.sums;
    const ow_conv *c = k->c;
    /* the gradient by the result, as images */
    j.top.channels = c->outputs;
    j.top.pixels = c->results;
    memcpy(j.top.at, k->at, sizeof(k->at));
    for (int d = 0; d < 3; d++) {
        j.top.image[d] = c->out[d];
        j.top.pad[d] = 0;
    }
    j.w.c = c;
    j.w.top = &j.top;
    j.w.down = (c->out[1] + 3) / 4;
    j.w.across = (c->out[2] + 3) / 4;
    j.w.tiles = c->batch * j.w.down * j.w.across;
    j.channels = ow_conv_even(c->channels, OW_WINOGRAD_SIDE, c->wide);
    j.outputs = ow_conv_even(c->outputs, OW_WINOGRAD_SIDE, 1);
    j.across = (c->channels + j.channels - 1) / j.channels;
    j.most = ow_conv_even(j.w.tiles, OW_WINOGRAD_TILES, 1);
    k->blocks = (j.w.tiles + j.most - 1) / j.most;
    j.units = j.across * ((c->outputs + j.outputs - 1) / j.outputs);
    ow_kernel_cut(k, j.units, 1, 1);
    /* each part of the sums is transformed back */
    k->sums = ow_at_most(k->sums, ow_at_least(j.w.tiles / 192, ow_at_most(4, k->blocks)));
    return ow_kernel_sum_up(s, k, ow_kernels_by_winograd);
}

/* About how many cycles an algorithm takes, as ow_conv_cost. */
static double ow_kernels_cost(const ow_conv *c, const ow_planes *p, int algorithm)
{
    const double lanes = (double)c->wide / 2, batch = (double)c->batch;
    const double outputs = (double)c->outputs, terms = (double)c->elements;
    switch (algorithm) {
    case OW_CONV_DIRECT: {
        /* in the end, vectors of sums are added up */
        const double places = batch * ((double)p->places + lanes / 2),
                     blocks = places / OW_CONV_LINE;
        return (places / lanes + 8 * (blocks > 1 ? blocks : 1)) * outputs * terms;
    }
    case OW_CONV_PATCHES: {
        /* elements of the matrix are written row by row of the kernel, those of the gradient one by
         * one */
        const double written = 1.5 + 22 / (double)c->kernel[2];
        return batch * (double)c->places *
               (1.1 * outputs * terms / lanes + written * terms + 3 * outputs);
    }
    case OW_CONV_FFT: {
        int64_t rows, columns;
        const ow_conv t = ow_fft_by_kernels(c);
        return ow_fft_cost(&t, &rows, &columns);
    }
    default: {
        const double tiles = batch * (double)((c->out[1] + 3) / 4) * (double)((c->out[2] + 3) / 4);
        const double in = (double)ow_round_up(c->channels, (int64_t)lanes) / lanes;
        const double out = (double)ow_round_up(c->outputs, (int64_t)lanes) / lanes;
        const double across = (double)((c->channels + OW_WINOGRAD_SIDE - 1) / OW_WINOGRAD_SIDE);
        const double down = (double)((c->outputs + OW_WINOGRAD_SIDE - 1) / OW_WINOGRAD_SIDE);
        return 1.15 * tiles * 36 * in * outputs + tiles * (in * 350 * down + out * 250 * across) +
               1000 * in * outputs * (1 + tiles / 192);
    }
    }
}

/* The algorithms of gradients by kernels. */
static const int ow_kernels_algorithms[] = {OW_CONV_DIRECT, OW_CONV_PATCHES, OW_CONV_WINOGRAD,
                                            OW_CONV_FFT};
#define OW_KERNELS_ALGORITHMS 4

static int ow_kernels_can(const ow_step *s, const ow_conv *c, int algorithm)
{
    if (!ow_conv_may((int)OW_PARAMS(s, conv)->allowed, algorithm))
        return 0;
    if (algorithm == OW_CONV_FFT) {
        const ow_conv t = ow_fft_by_kernels(c);
        /* small kernels gain nothing */
        const int large =
            t.places >= OW_FFT_ELEMENTS || OW_PARAMS(s, conv)->algorithm == OW_CONV_FFT;
        return large && c->groups == 1 && ow_conv_is_flat(c) && ow_fft_can(&t);
    }
    return algorithm != OW_CONV_WINOGRAD || ow_conv_can(c, algorithm);
}

/* The algorithm of a step, which notes it. */
static int ow_kernels_algorithm(ow_step *s, const ow_conv *c, const ow_planes *p)
{
    const int forced = (int)OW_PARAMS(s, conv)->algorithm;
    int best = OW_CONV_MODEL;
    double least = 0;
    for (int i = 0; i < OW_KERNELS_ALGORITHMS; i++) {
        const int k = ow_kernels_algorithms[i];
        if (!ow_kernels_can(s, c, k))
            continue;
        /* the one that is asked for costs nothing */
        const double cost = k == forced ? 0 : ow_kernels_cost(c, p, k);
        if (best == OW_CONV_MODEL || cost < least) {
            best = k;
            least = cost;
        }
    }
    ow_conv_note(s, best, 0);
    return best;
}

/* The name of the algorithm of a step with these parameters, as ow_conv_algorithm_name. */
static const char *ow_kernels_algorithm_name(const ow_conv_params *params, const int64_t *image,
                                             const int64_t *kernel, int f64)
{
    char error[OW_ERROR_SIZE];
    ow_slot z = {.itemsize = f64 ? 8 : 4}, *out = &z;
    ow_step s = {.params = params, .out = &out, .error = error};
    ow_conv c;
    ow_planes planes;
    int64_t result[5], at[3] = {0, 0, 0};
    if (ow_conv_plan(&s, &c, image, kernel, result) || c.elements == 0)
        return NULL;
    memset(c.at, 0, sizeof(c.at));
    ow_line_planes(&c, at, &planes);
    return ow_conv_names[ow_kernels_algorithm(&s, &c, &planes)];
}

/* --- a kernel for each channel ---------------------------------------------------------------- */

/* The most memory of copies of planes of a vector of channels, which stay in the second cache. */
#define OW_DEPTHWISE_BYTES (320 << 10)

typedef struct ow_depthwise_job {
    ow_depthwise q;
    ow_depthwise_fn fn;
    int64_t vectors, images; /* of channels; of a unit */
    int64_t bytes;           /* of memory of a unit */
    int failed;
} ow_depthwise_job;

/* Describe a depthwise convolution or a gradient of one; whether it suits depthwise_tiles.h. */
static int ow_depthwise_plan(const ow_step *s, const ow_conv *c, ow_depthwise_job *j)
{
    const int64_t lanes = c->wide / 2;
    const int64_t forced = OW_PARAMS(s, conv)->algorithm;
    if ((forced != OW_CONV_MODEL && forced != OW_CONV_MEASURE) || c->channels != 1 ||
        c->outputs != 1 || c->elements < 4 || !ow_conv_is_flat(c) || 4 * c->groups < 3 * lanes)
        return 0;
    const int64_t down = (c->out[1] - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t across = (c->out[2] - 1) * c->stride[2] + (c->kernel[2] - 1) * c->dilation[2] + 1;
    j->q.c = c;
    j->q.high = ow_at_least(down, c->pad[1] + c->image[1]);
    j->q.wide = ow_at_least(across, c->pad[2] + c->image[2]);
    j->vectors = (c->groups + lanes - 1) / lanes;
    if (j->q.high > OW_DEPTHWISE_BYTES || j->q.wide > OW_DEPTHWISE_BYTES)
        return 0;
    const int64_t pixels = c->image[1] * c->image[2];
    j->bytes =
        (j->q.high * j->q.wide + c->elements + c->places + pixels) * lanes * (c->f64 ? 8 : 4);
    return j->bytes <= OW_DEPTHWISE_BYTES;
}

static void ow_depthwise_unit(void *arg, int64_t unit)
{
    ow_depthwise_job *j = arg;
    const ow_conv *c = j->q.c;
    const int64_t lanes = c->wide / 2, channel = unit % j->vectors * lanes,
                  first = unit / j->vectors * j->images;
    char *memory = ow_alloc(j->bytes);
    if (memory == NULL)
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
    else
        j->fn(&j->q, channel, ow_at_most(lanes, c->groups - channel), first,
              ow_at_most(first + j->images, c->batch), memory);
    ow_free(memory);
}

/* Share it out; `whole`: one unit goes over all images. */
static int ow_depthwise_run(ow_step *s, ow_depthwise_job *j, const ow_depthwise_fn *fns, int whole)
{
    const ow_conv *c = j->q.c;
    const double each = 0.2 * (double)c->places * (double)c->elements +
                        3 * (double)(c->places + j->q.high * j->q.wide);
    const double ns = each * (double)c->batch * (double)j->vectors * (c->f64 ? 1.2 : 1);
    const int64_t wanted = (ow_chunks(ns) + j->vectors - 1) / j->vectors;
    j->fn = fns[c->f64];
    j->images = whole ? c->batch : (c->batch + wanted - 1) / wanted;
    ow_parallel(ow_depthwise_unit, j, j->vectors * ((c->batch + j->images - 1) / j->images));
    if (j->failed)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate blocks of a convolution");
    return OW_OK;
}

/* in: image, gradient by the result, lengths of kernels along the spatial axes */
static int ow_conv_plan_kernels(ow_step *s, ow_conv *c, int64_t *kernel)
{
    int64_t image[5], given[5];
    const ow_slot *n = s->in[2];
    const int axes = (int)OW_PARAMS(s, conv)->axes;
    ow_conv_lengths(s->in[0], image);
    ow_conv_lengths(s->in[1], given);
    if (n->shape[0] != axes)
        return OW_FAIL(s, OW_VALUE_ERROR, "shape has %lld entries, not %d", (long long)n->shape[0],
                       axes);
    kernel[0] = given[1];
    kernel[1] = image[1] / OW_PARAMS(s, conv)->groups;
    kernel[2] = 1;
    for (int d = 0; d < axes; d++)
        kernel[5 - axes + d] = *(const int64_t *)(n->data + d * n->strides[0]);
    if (OW_PARAMS(s, conv)->unshared)
        memcpy(kernel + 5, given + 2, 3 * sizeof(*kernel));
    return ow_conv_plan_gradient(s, c, image, kernel, given);
}

/* An ow_conv_try_fn. */
static int ow_kernels_try(ow_step *s, const ow_conv_trial *t, int algorithm)
{
    ow_kernel_sums k = *t->by_kernels;
    if (algorithm != OW_CONV_PATCHES) {
        const ow_slot *z = s->out[0];
        int not_finite = 0;
        const int rc = algorithm == OW_CONV_DIRECT ? ow_kernels_run_lines(s, &k)
                       : algorithm == OW_CONV_WINOGRAD
                           ? ow_kernels_run_winograd(s, &k)
                           : ow_conv_fft_kernels(s, k.c, s->in[1], &not_finite);
        /* infinities beside the places of a line have met zeros that are not there, and an infinite
         * number of a tile makes others nan */
        if (rc || ow_all_finite(k.c->f64, z->data, ow_size(z)))
            return rc;
        s->algorithm = ow_conv_names[OW_CONV_PATCHES];
        s->why = "gradients are not finite, which other algorithms would spread";
        k = *t->by_kernels;
    }
    return ow_kernels_run_products(s, &k);
}

static int ow_conv_kernels_run(ow_step *s)
{
    ow_conv c;
    int64_t kernel[8];
    ow_slot *z = s->out[0];
    const ow_slot *top = s->in[1];
    int rc = ow_conv_plan_kernels(s, &c, kernel);
    if (rc)
        return rc;
    ow_conv_set_shape(z, kernel);
    rc = ow_ensure(s, z);
    if (rc || ow_size(z) == 0)
        return rc;
    if (c.batch == 0) {
        memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
        return OW_OK;
    }
    ow_conv_show_image(&c, s->in[0]);
    c.kernels = z->data;
    c.results = top->data;
    ow_kernel_sums k = {0};
    k.c = &c;
    k.at[0] = top->strides[0];
    k.at[1] = top->strides[1];
    for (int d = 2; d < top->ndim; d++)
        k.at[d + 5 - top->ndim] = top->strides[d];
    ow_line_planes(&c, k.at + 2, &k.planes);
    ow_depthwise_job depthwise = {{&c, c.results, k.at, 0, 0}};
    if (ow_depthwise_plan(s, &c, &depthwise))
        return ow_depthwise_run(s, &depthwise, ow_kernels->depthwise_kernels, 1);
    const int algorithm = ow_kernels_algorithm(s, &c, &k.planes);
    ow_conv_trial t = {ow_kernels_try, &c, NULL, 0};
    t.by_kernels = &k;
    t.top_at = k.at;
    if (OW_PARAMS(s, conv)->algorithm != OW_CONV_MEASURE)
        return ow_kernels_try(s, &t, algorithm);
    for (int i = 0; i < OW_KERNELS_ALGORITHMS; i++)
        if (ow_kernels_can(s, &c, ow_kernels_algorithms[i]))
            t.able[t.count++] = ow_kernels_algorithms[i];
    return ow_conv_run_fastest(s, &t, &c, algorithm);
}

#endif
