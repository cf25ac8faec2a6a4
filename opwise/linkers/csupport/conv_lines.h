/* Images and results of a convolution as lines that a kernel slides along.
 * Lines lie one after the other, with zeros between them where there are pads. Lines of an image
 * and of the result are equally long, so the place p of a result meets the elements p + offset of
 * the image, with one offset for each element of the kernel, whatever the line: a convolution
 * becomes a sum of shifted lines. Zeros behind a line are those before the next one. With steps,
 * each phase of them has a plane of its own, in which neighbours are neighbours in memory.
 * What the result has behind the end of its lines are no places: what is computed there is dropped,
 * and what is read there is 0. */
#ifndef OW_CONV_LINES_H
#define OW_CONV_LINES_H

#include "conv.h"

/* How one channel of an operand is cut into lines. */
typedef struct ow_line_axes {
    int64_t length[3], step[3], dilation[3], pad[3], at[3]; /* at: bytes between elements */
    int64_t slots[3];     /* how many phases of the steps are met: j * dilation % step for each j */
    int64_t count;        /* indices along the first axis */
    int64_t across, wide; /* lines of one of them; elements of a line */
    int plain;            /* whether a channel is one line as it is */
} ow_line_axes;

typedef struct ow_planes {
    ow_line_axes image, result;
    int64_t period[3];
    int64_t phases; /* planes of one channel of the image */
    int64_t reach;  /* the largest offset within a plane */
    int64_t lines;  /* from the first place to the last */
    int64_t places; /* the same in elements, with what lies between lines */
} ow_planes;

static int64_t ow_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Make one axis of two along which the kernel has one element and the steps are 1, where operands
 * allow that: short lines cost more. */
static void ow_conv_join_axes(ow_conv *c, int64_t *result_at)
{
    for (int d = 1; d >= 0; d--) {
        int plain = 1;
        for (int a = d; a < d + 2; a++)
            plain &= c->kernel[a] == 1 && c->stride[a] == 1 && c->pad[a] == 0 &&
                     c->out[a] == c->image[a];
        if (!plain || (c->image[d] > 1 && (c->at[2 + d] != c->image[d + 1] * c->at[3 + d] ||
                                           result_at[d] != c->out[d + 1] * result_at[d + 1])))
            continue;
        c->image[d + 1] *= c->image[d];
        c->out[d + 1] *= c->out[d];
        for (int a = d; a > 0; a--) {
            c->image[a] = c->image[a - 1];
            c->out[a] = c->out[a - 1];
            c->kernel[a] = c->kernel[a - 1];
            c->stride[a] = c->stride[a - 1];
            c->dilation[a] = c->dilation[a - 1];
            c->pad[a] = c->pad[a - 1];
            c->at[2 + a] = c->at[1 + a];
            result_at[a] = result_at[a - 1];
        }
        c->image[0] = c->out[0] = c->kernel[0] = c->stride[0] = c->dilation[0] = 1;
        c->pad[0] = 0;
    }
}

static int ow_line_is_plain(const ow_line_axes *l, int64_t item)
{
    for (int d = 0; d < 3; d++)
        if (l->step[d] != 1 || l->pad[d] || l->slots[d] != 1 || (d < 2 && l->length[d] != 1))
            return 0;
    return l->across == 1 && l->count == 1 && l->length[2] == l->wide && l->at[2] == item;
}

static void ow_line_planes(ow_conv *c, int64_t *result_at, ow_planes *p)
{
    int64_t pitch[3];
    ow_conv_join_axes(c, result_at);
    p->phases = 1;
    for (int d = 0; d < 3; d++) {
        const int64_t s = c->stride[d],
                      used = (c->out[d] - 1) * s + (c->kernel[d] - 1) * c->dilation[d] + 1;
        int64_t most = c->out[d] * s,
                inside = used - c->pad[d] < c->image[d] ? used - c->pad[d] : c->image[d];
        inside = inside < 0 ? 0 : inside;
        most = most > c->pad[d] + inside ? most : c->pad[d] + inside;
        most = most > used - c->pad[d] ? most : used - c->pad[d];
        pitch[d] = (most + s - 1) / s;
        p->period[d] = s / ow_divisor(s, c->dilation[d]);
        p->image.length[d] = c->image[d];
        p->image.step[d] = s;
        p->image.dilation[d] = c->dilation[d];
        p->image.pad[d] = c->pad[d];
        p->image.at[d] = c->at[2 + d];
        p->image.slots[d] = p->period[d] < c->kernel[d] ? p->period[d] : c->kernel[d];
        p->phases *= p->image.slots[d];
        p->result.length[d] = c->out[d];
        p->result.step[d] = p->result.dilation[d] = p->result.slots[d] = 1;
        p->result.pad[d] = 0;
        p->result.at[d] = result_at[d];
    }
    p->image.count = p->result.count = pitch[0];
    p->image.across = p->result.across = pitch[1];
    p->image.wide = p->result.wide = pitch[2];
    p->image.plain = ow_line_is_plain(&p->image, c->f64 ? 8 : 4);
    p->result.plain = ow_line_is_plain(&p->result, c->f64 ? 8 : 4);
    p->reach = 0;
    for (int d = 0; d < 3; d++)
        p->reach = p->reach * pitch[d] + (c->kernel[d] - 1) * c->dilation[d] / c->stride[d];
    p->lines = (c->out[0] - 1) * pitch[1] + c->out[1];
    p->places = (p->lines - 1) * pitch[2] + c->out[2];
}

/* Where the plane of an element of the kernel is among those of its channel; its offset there. */
static int64_t ow_planes_tap(const ow_conv *c, const ow_planes *p, int64_t element, int64_t *offset)
{
    int64_t plane = 0, shift[3], slot[3];
    for (int d = 2; d >= 0; d--) {
        const int64_t k = element % c->kernel[d], from = c->flip ? c->kernel[d] - 1 - k : k;
        element /= c->kernel[d];
        slot[d] = from % p->period[d];
        shift[d] = from * c->dilation[d] / c->stride[d];
    }
    for (int d = 0; d < 3; d++)
        plane = plane * p->image.slots[d] + slot[d];
    *offset = (shift[0] * p->image.across + shift[1]) * p->image.wide + shift[2];
    return plane;
}

/* a / b, rounded up. */
static inline int64_t ow_lines_up(int64_t a, int64_t b) { return b == 1 ? a : (a + b - 1) / b; }

/* Lines up to so many elements are copied without a call, and zeroed together. */
#define OW_SHORT_LINE 64

#define OW_LINE_AXES(T)                                                                            \
    /* Copy elements that are some bytes apart; loops with constant steps become vectors. */       \
    static inline void ow_lines_copy_##T(T *restrict to, int64_t to_step, const T *restrict from,  \
                                         int64_t step, int64_t n)                                  \
    {                                                                                              \
        const int64_t item = sizeof(T);                                                            \
        if (to_step == item && step == item) {                                                     \
            if (n > OW_SHORT_LINE || n < 4) {                                                      \
                for (int64_t i = 0; i < n; i++)                                                    \
                    to[i] = from[i];                                                               \
                return;                                                                            \
            }                                                                                      \
            for (int64_t i = 0; i + 4 < n; i += 4)                                                 \
                memcpy(to + i, from + i, 4 * sizeof(T));                                           \
            memcpy(to + n - 4, from + n - 4, 4 * sizeof(T));                                       \
        } else if (to_step == item && step == 2 * item)                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = from[2 * i];                                                               \
        else if (to_step == item && step == 4 * item)                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = from[4 * i];                                                               \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                *(T *)((char *)to + i * to_step) = *(const T *)((const char *)from + i * step);    \
    }                                                                                              \
    /* Copy lines `first` to `first + count` of a channel to a plane for each phase, of \
     * `plane` elements; zeros lie beside the image and behind the lines. Or, if `back`, \
     * copy the lines of phase `only` to the image. */          \
    static void ow_lines_move_##T(const ow_line_axes *l, char *image, int64_t first,               \
                                  int64_t count, T *lines, int64_t plane, int back, int64_t only)  \
    {                                                                                              \
        const int64_t phases = l->slots[0] * l->slots[1] * l->slots[2], s = l->step[2];            \
        const int zeroed = l->wide <= OW_SHORT_LINE;                                               \
        if (!back && zeroed)                                                                       \
            memset(lines, 0, sizeof(T) * (size_t)(plane * phases));                                \
        for (int64_t phase = back ? only : 0; phase < (back ? only + 1 : phases); phase++) {       \
            int64_t start[3] = {-l->pad[0], -l->pad[1], -l->pad[2]}, rest = phase;                 \
            for (int d = 2; d >= 0 && rest; d--) {                                                 \
                start[d] += rest % l->slots[d] * l->dilation[d] % l->step[d];                      \
                rest /= l->slots[d];                                                               \
            }                                                                                      \
            int64_t from = start[2] < 0 ? ow_lines_up(-start[2], s) : 0;                           \
            int64_t to = l->length[2] > start[2] ? ow_lines_up(l->length[2] - start[2], s) : 0;    \
            to = to < l->wide ? to : l->wide;                                                      \
            from = from < to ? from : to;                                                          \
            int64_t i = 0, j = first;                                                              \
            if (j < 0 || j >= l->across) {                                                         \
                i = first / l->across - (first % l->across < 0);                                   \
                j = first - i * l->across;                                                         \
            }                                                                                      \
            T *line = lines;                                                                       \
            for (int64_t n = 0; n < count; n++, line += l->wide) {                                 \
                const int64_t y = i * l->step[0] + start[0], x = j * l->step[1] + start[1];        \
                if (++j == l->across) {                                                            \
                    j = 0;                                                                         \
                    i++;                                                                           \
                }                                                                                  \
                if (y < 0 || y >= l->length[0] || x < 0 || x >= l->length[1]) {                    \
                    if (!back && !zeroed)                                                          \
                        memset(line, 0, sizeof(T) * (size_t)l->wide);                              \
                    continue;                                                                      \
                }                                                                                  \
                char *row =                                                                        \
                    image + y * l->at[0] + x * l->at[1] + (from * s + start[2]) * l->at[2];        \
                if (back) {                                                                        \
                    ow_lines_copy_##T((T *)row, s * l->at[2], line + from, sizeof(T), to - from);  \
                    continue;                                                                      \
                }                                                                                  \
                if (!zeroed)                                                                       \
                    for (int64_t k = 0; k < from; k++)                                             \
                        line[k] = 0;                                                               \
                ow_lines_copy_##T(line + from, sizeof(T), (const T *)row, s * l->at[2],            \
                                  to - from);                                                      \
                if (!zeroed)                                                                       \
                    for (int64_t k = to; k < l->wide; k++)                                         \
                        line[k] = 0;                                                               \
            }                                                                                      \
            if (!back) {                                                                           \
                if (!zeroed)                                                                       \
                    for (T *behind = line; behind < lines + plane; behind++)                       \
                        *behind = 0;                                                               \
                lines += plane;                                                                    \
            }                                                                                      \
        }                                                                                          \
    }
OW_LINE_AXES(float)
OW_LINE_AXES(double)

static inline void ow_lines_read(int f64, const ow_line_axes *l, const char *image, int64_t first,
                                 int64_t count, char *lines, int64_t plane)
{
    const int64_t item = f64 ? 8 : 4;
    if (l->plain && count == 1 && first == 0) {
        memcpy(lines, image, (size_t)(l->wide * item));
        memset(lines + l->wide * item, 0, (size_t)((plane - l->wide) * item));
    } else if (f64)
        ow_lines_move_double(l, (char *)image, first, count, (double *)lines, plane, 0, 0);
    else
        ow_lines_move_float(l, (char *)image, first, count, (float *)lines, plane, 0, 0);
}

static inline void ow_lines_write(int f64, const ow_line_axes *l, char *image, int64_t first,
                                  int64_t count, char *lines, int64_t phase)
{
    if (f64)
        ow_lines_move_double(l, image, first, count, (double *)lines, 0, 1, phase);
    else
        ow_lines_move_float(l, image, first, count, (float *)lines, 0, 1, phase);
}

#endif
