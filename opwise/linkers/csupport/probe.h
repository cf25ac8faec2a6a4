/* How fast the hardware moves bytes and computes at best: what steps are compared with. */
#ifndef OW_PROBE_H
#define OW_PROBE_H

#include <stdint.h>

/* What memory must have beyond the arrays: they begin where a huge page does, and lie apart. */
#define OW_PROBE_PAGE (2 << 20)
#define OW_PROBE_SLACK (OW_PROBE_PAGE + 1024)

/* Bytes read and written in a nanosecond by z = x + y over arrays of `bytes` altogether: the best
 * of as many passes as `seconds` have room for, and of three at least. memory: OW_PROBE_SLACK more
 * than these bytes. shared: by all threads of the team. */
double ow_probe_stream(char *memory, int64_t bytes, int shared, double seconds);

/* Operations in a nanosecond of multiplications and additions of registers, as ow_probe_stream.
 * fused: rounded together, where the vectors in use have that. */
double ow_probe_rate(int f64, int fused, int shared, double seconds);

/* The bytes of a core's second-level cache; 0 or less if the system does not say. */
int64_t ow_second_level_cache(void);

#endif
