/* Convolutions in groups of few channels, depthwise ones among them, and their gradients by images.
 * Depthwise ones of small planes are computed with vectors of channels (depthwise_tiles.h).
 * Products with so few rows would take less time than writing the matrix of what the kernel meets.
 * Lines (conv_lines.h) of a group, as many as stay in the first caches, are shifted and added
 * instead. */
#ifndef OW_CONV_GROUPS_H
#define OW_CONV_GROUPS_H

#include "conv_kernels.h"

/* Elements of lines of all channels of a group that are computed at once. */
#define OW_GROUP_LINES 8192

typedef struct ow_group_job {
    const ow_conv *c;
    ow_planes planes;
    int64_t lines, blocks; /* of a block; how many blocks an image has */
    int64_t chunks, total; /* units of work; blocks of all groups and images */
    int failed;
} ow_group_job;

static char *ow_group_memory(ow_group_job *j, int64_t bytes)
{
    char *memory = ow_alloc(bytes);
    if (memory == NULL)
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
    return memory;
}

/* Call what follows the convolution for lines `first` to `end` of a result, which lie at `from`. */
static void ow_groups_finish(const ow_conv *c, const ow_planes *p, int64_t image, int64_t output,
                             int64_t first, int64_t end, char *from)
{
    const int64_t item = c->f64 ? 8 : 4;
    for (int64_t line = first; line < end;) {
        const int64_t y = line % p->result.across, to = ow_at_most(y + end - line, c->out[1]);
        const int64_t row = line / p->result.across * c->out[1] + y;
        char *lines = from + (line - first) * p->result.wide * item;
        for (int64_t i = 1; i < to - y; i++)
            memmove(lines + i * c->out[2] * item, lines + i * p->result.wide * item,
                    (size_t)(c->out[2] * item));
        if (y < to)
            c->finish(c->then, image, output, row * c->out[2], (to - y) * c->out[2], lines);
        line += p->result.across - y;
    }
}

/* Some blocks of results. */
static void ow_groups_forward(void *arg, int64_t chunk)
{
    ow_group_job *j = arg;
    const ow_conv *c = j->c;
    const ow_planes *p = &j->planes;
    const int64_t item = c->f64 ? 8 : 4, lanes = c->wide / 2, wide = p->image.wide;
    const int64_t more = p->reach / wide + 1, taps = c->elements / c->channels;
    const int64_t plane = ow_round_up((j->lines + more) * wide + lanes, lanes) + lanes;
    const int64_t row = ow_round_up(j->lines * wide, lanes) + lanes, channel = p->phases * plane;
    char *x =
        ow_group_memory(j, (c->channels * channel + c->outputs * row) * item + c->elements * 8);
    if (x == NULL)
        return;
    char *z = x + c->channels * channel * item;
    int64_t *offset = (int64_t *)(z + c->outputs * row * item);
    for (int64_t e = 0; e < c->elements; e++) {
        int64_t shift;
        const int64_t phase = ow_planes_tap(c, p, e % taps, &shift);
        offset[e] = e / taps * channel + phase * plane + shift;
    }
    int64_t end, at = ow_chunk_range(chunk, j->chunks, j->total, 1, &end);
    int64_t block = at % j->blocks, g = at / j->blocks % c->groups, b = at / j->blocks / c->groups;
    for (; at < end; at++) {
        const int64_t line = block * j->lines, lines = ow_at_most(j->lines, p->lines - line);
        const char *image = c->pixels + b * c->at[0] + g * c->channels * c->at[1];
        for (int64_t i = 0; i < c->channels; i++)
            ow_lines_read(c->f64, &p->image, image + i * c->at[1], line, lines + more,
                          x + i * channel * item, plane);
        const ow_slide q = {
            c->elements, x,  c->kernels + g * c->outputs * c->elements * item, offset, c->elements,
            z,           row};
        ow_kernels->slide[c->f64](&q, c->outputs, (lines - 1) * wide + c->out[2]);
        char *result = c->results + (b * c->groups + g) * c->outputs * c->places * item;
        for (int64_t i = 0; i < c->outputs; i++) {
            if (c->finish)
                ow_groups_finish(c, p, b, g * c->outputs + i, line, line + lines,
                                 z + i * row * item);
            else
                ow_lines_write(c->f64, &p->result, result + i * c->places * item, line, lines,
                               z + i * row * item, 0);
        }
        if (++block == j->blocks) {
            block = 0;
            if (++g == c->groups) {
                g = 0;
                b++;
            }
        }
    }
    ow_free(x);
}

/* The elements of the kernels of a group that meet one phase of its images: where the results
 * are that belong to them, and the weights, of one channel after the other. Returns how many
 * there are. */
static int64_t ow_group_weights(const ow_conv *c, const ow_planes *p, int64_t group, int64_t phase,
                                int64_t row, int64_t margin, int64_t *offset, char *weights)
{
    const int64_t taps = c->elements / c->channels;
    int64_t n = 0;
    for (int64_t o = 0; o < c->outputs; o++)
        for (int64_t e = 0; e < taps; e++) {
            int64_t shift;
            if (ow_planes_tap(c, p, e, &shift) == phase)
                offset[n++] = o * row + margin - shift;
        }
    int64_t at = 0;
    for (int64_t o = 0; o < c->outputs; o++)
        for (int64_t e = 0; e < taps; e++) {
            int64_t shift;
            if (ow_planes_tap(c, p, e, &shift) != phase)
                continue;
            for (int64_t i = 0; i < c->channels; i++) {
                const int64_t from = (group * c->outputs + o) * c->elements + i * taps + e;
                if (c->f64)
                    ((double *)weights)[i * n + at] = ((const double *)c->kernels)[from];
                else
                    ((float *)weights)[i * n + at] = ((const float *)c->kernels)[from];
            }
            at++;
        }
    return n;
}

/* Some blocks of images. */
static void ow_groups_by_images(void *arg, int64_t chunk)
{
    ow_group_job *j = arg;
    const ow_conv *c = j->c;
    const ow_planes *p = &j->planes;
    const int64_t item = c->f64 ? 8 : 4, lanes = c->wide / 2, wide = p->image.wide;
    const int64_t more = p->reach / wide + 1, margin = more * wide;
    const int64_t plane = ow_round_up((j->lines + more) * wide + lanes, lanes) + lanes;
    const int64_t row = ow_round_up(j->lines * wide, lanes) + lanes;
    const int64_t all = c->outputs * c->elements;
    char *top =
        ow_group_memory(j, (c->outputs * plane + c->channels * row + ow_round_up(all, 2)) * item +
                               (c->outputs * (c->elements / c->channels) + p->phases) * 8);
    if (top == NULL)
        return;
    char *z = top + c->outputs * plane * item, *weights = z + c->channels * row * item;
    int64_t *offset = (int64_t *)(weights + ow_round_up(all, 2) * item);
    int64_t *counts = offset + c->outputs * (c->elements / c->channels), ready = -1;
    int64_t end, at = ow_chunk_range(chunk, j->chunks, j->total, 1, &end);
    int64_t block = at % j->blocks, b = at / j->blocks % c->batch, g = at / j->blocks / c->batch;
    for (; at < end; at++) {
        const int64_t line = block * j->lines;
        const int64_t lines = ow_at_most(j->lines, p->image.count * p->image.across - line);
        if (ready != g) {
            int64_t n = 0;
            for (int64_t phase = 0; phase < p->phases; phase++) {
                counts[phase] = ow_group_weights(c, p, g, phase, plane, margin, offset + n,
                                                 weights + n * c->channels * item);
                n += counts[phase];
            }
            ready = g;
        }
        const char *given = c->results + (b * c->groups + g) * c->outputs * c->places * item;
        for (int64_t o = 0; o < c->outputs; o++)
            ow_lines_read(c->f64, &p->result, given + o * c->places * item, line - more,
                          lines + more, top + o * plane * item, plane);
        char *image = c->pixels + b * c->at[0] + g * c->channels * c->at[1];
        for (int64_t phase = 0, n = 0; phase < p->phases; n += counts[phase++]) {
            const ow_slide q = {counts[phase],
                                top,
                                weights + n * c->channels * item,
                                offset + n,
                                counts[phase],
                                z,
                                row};
            ow_kernels->slide[c->f64](&q, c->channels, lines * wide);
            for (int64_t i = 0; i < c->channels; i++)
                ow_lines_write(c->f64, &p->image, image + i * c->at[1], line, lines,
                               z + i * row * item, phase);
        }
        if (++block == j->blocks) {
            block = 0;
            if (++b == c->batch) {
                b = 0;
                g++;
            }
        }
    }
    ow_free(top);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Whether lines are the better way to `rows` channels or outputs of a group: not if most of a line
 * is no place. Writing an element of the matrix takes as long as multiplying it with some 16 rows;
 * lines of all `channels` that are read or written must stay in the second cache. */
static int ow_groups_suit_lines(const ow_conv *c, const ow_planes *p, int64_t rows,
                                int64_t channels)
{
    const double places = (double)p->places + (double)c->wide / 4;
    const double most = (double)c->places * (1.1 + 16.0 / (double)rows);
    return places <= most && channels * (p->image.wide + p->reach) <= OW_CONV_BLOCK;
}

/* Cut `lines` lines of each image, of which `channels` are in the caches together, into blocks, and
 * all blocks into units of work. */
static void ow_groups_cut(ow_group_job *j, int64_t lines, int64_t channels)
{
    const ow_conv *c = j->c;
    const ow_planes *p = &j->planes;
    const int64_t room = OW_GROUP_LINES / channels / p->image.wide,
                  reach = p->reach / p->image.wide;
    j->lines = ow_at_least(ow_at_least(room, 3 * reach), 4);
    j->blocks = (lines + j->lines - 1) / j->lines;
    j->lines = (lines + j->blocks - 1) / j->blocks;
    j->blocks = (lines + j->lines - 1) / j->lines;
    j->total = c->batch * c->groups * j->blocks;
    const double sums = (double)c->outputs * (double)p->places * (double)c->elements * 5e-2;
    const double bytes = (double)(c->outputs + c->channels * p->phases) * (double)p->places * 0.4;
    const double ns = (sums + bytes) * (c->f64 ? 2 : 1) * (double)c->batch * (double)c->groups;
    j->chunks = ow_at_most(ow_chunks(ns), j->total);
}

static int ow_groups_share(ow_step *s, ow_group_job *j, ow_task fn)
{
    ow_parallel(fn, j, j->chunks);
    if (j->failed)
        return OW_FAIL(s, OW_MEMORY_ERROR, "could not allocate blocks of a convolution");
    return OW_OK;
}

static void ow_conv_places_at(const ow_conv *c, int64_t *at)
{
    at[2] = c->f64 ? 8 : 4;
    at[1] = at[2] * c->out[2];
    at[0] = at[1] * c->out[1];
}

/* As conv. */
static int ow_conv_groups_run(ow_step *s)
{
    ow_conv c;
    int64_t result[5], at[3];
    const int rc = ow_conv_lengths_forward(s, &c, result);
    if (rc || ow_size(s->out[0]) == 0)
        return rc;
    ow_conv_show_image(&c, s->in[0]);
    ow_depthwise_job depthwise = {{&c, NULL, NULL, 0, 0}};
    if (ow_depthwise_plan(s, &c, &depthwise)) {
        const int enough = ow_conv_ready(s, result, s->in[1], NULL);
        char *copy = s->scratch;
        if (enough)
            return enough;
        c.kernels = ow_conv_side_by_side(s->in[1], &copy);
        c.results = s->out[0]->data;
        return ow_depthwise_run(s, &depthwise, ow_kernels->depthwise, 0);
    }
    ow_conv_places_at(&c, at);
    ow_group_job j = {.c = &c};
    ow_line_planes(&c, at, &j.planes);
    const int64_t channels = c.channels * j.planes.phases + c.outputs;
    if (c.elements == 0 || !ow_groups_suit_lines(&c, &j.planes, c.outputs, channels))
        return ow_conv_run(s);
    const int ready = ow_conv_ready(s, result, s->in[1], NULL);
    if (ready)
        return ready;
    char *memory = s->scratch;
    c.kernels = ow_conv_side_by_side(s->in[1], &memory);
    c.results = s->out[0]->data;
    ow_groups_cut(&j, j.planes.lines, channels);
    ow_conv_finish_by(s, &c, 1);
    return ow_groups_share(s, &j, ow_groups_forward);
}

/* As conv_images. */
static int ow_conv_groups_images_run(ow_step *s)
{
    ow_conv c;
    int64_t image[5], at[3];
    ow_slot *z = s->out[0];
    int rc = ow_conv_plan_images(s, &c, image);
    rc = rc ? rc : ow_conv_ready(s, image, s->in[0], s->in[1]);
    if (rc || ow_size(z) == 0)
        return rc;
    ow_conv_show_image(&c, z);
    char *memory = s->scratch;
    c.kernels = ow_conv_side_by_side(s->in[0], &memory);
    if (c.outputs == 1 && c.channels == 1 && ow_all_finite(c.f64, c.kernels, ow_size(s->in[0]))) {
        const int turn = ow_conv_is_turned(&c);
        ow_conv turned = ow_conv_turned(&c);
        ow_conv_show_image(&turned, s->in[1]);
        turned.results = z->data;
        ow_depthwise_job depthwise = {{&c, turned.pixels, turned.at, 0, 0}};
        if (ow_depthwise_plan(s, turn ? &turned : &c, &depthwise))
            return ow_depthwise_run(s, &depthwise,
                                    turn ? ow_kernels->depthwise : ow_kernels->depthwise_images, 0);
    }
    ow_conv_places_at(&c, at);
    ow_group_job j = {.c = &c};
    ow_line_planes(&c, at, &j.planes);
    const int64_t channels = c.outputs + c.channels;
    /* infinite weights would meet zeros between lines, which are not there */
    if (c.outputs == 0 || !ow_groups_suit_lines(&c, &j.planes, c.channels, channels) ||
        !ow_all_finite(c.f64, c.kernels, ow_size(s->in[0])))
        return ow_conv_images_run(s);
    c.results = ow_conv_side_by_side(s->in[1], &memory);
    int holes = 0;
    for (int d = 0; d < 3; d++) {
        const int64_t pitch = d == 0   ? j.planes.image.count
                              : d == 1 ? j.planes.image.across
                                       : j.planes.image.wide;
        holes |=
            j.planes.image.slots[d] < c.stride[d] || pitch * c.stride[d] - c.pad[d] < c.image[d];
    }
    if (holes) /* elements that no kernel meets */
        memset(z->data, 0, (size_t)(ow_size(z) * z->itemsize));
    ow_groups_cut(&j, j.planes.image.count * j.planes.image.across, channels);
    return ow_groups_share(s, &j, ow_groups_by_images);
}

#endif
