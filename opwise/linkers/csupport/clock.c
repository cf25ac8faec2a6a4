/* How the counter of the processor is measured against the system's clock. */
#include "clock.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
double ow_ns_per_tick;
uint64_t ow_first_tick;
static int64_t ow_first_ns;

void ow_clock_begin(void)
{
    ow_first_ns = ow_system_clock();
    ow_first_tick = __rdtsc();
}

void ow_clock_calibrate(void)
{
    char source[32] = "";
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    if (f != NULL) {
        if (fgets(source, sizeof source, f) == NULL)
            source[0] = 0;
        fclose(f);
    }
    if (strcmp(source, "tsc\n") || ow_ns_per_tick != 0)
        return;
    while (ow_system_clock() - ow_first_ns < 5000000)
        ;
    ow_ns_per_tick =
        (double)(ow_system_clock() - ow_first_ns) / (double)(__rdtsc() - ow_first_tick);
}
#else
void ow_clock_begin(void) {}
void ow_clock_calibrate(void) {}
#endif
