/* Labels: vectors of any integer type, one element for each row of a matrix. */
#ifndef OW_LABELS_H
#define OW_LABELS_H

#include "runtime.h"

static inline int64_t ow_label(const ow_slot *labels, int64_t i)
{
    ow_slot item = *labels;
    item.data = labels->data + i * labels->strides[0];
    return ow_int(&item);
}

static inline void ow_put_int(ow_slot *c, int64_t i, int64_t value)
{
    switch (c->itemsize) {
    case 1:
        ((int8_t *)c->data)[i] = (int8_t)value;
        break;
    case 2:
        ((int16_t *)c->data)[i] = (int16_t)value;
        break;
    case 4:
        ((int32_t *)c->data)[i] = (int32_t)value;
        break;
    default:
        ((int64_t *)c->data)[i] = value;
    }
}

#endif
