// attack: count what happens on a processor, whoever runs there
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
// needs: feature perf_event_paranoid of 1 or more
#include "attack.h"
#include <linux/perf_event.h>

long attack(void) {
    struct perf_event_attr event = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_CPU_CLOCK};
    return raw(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}
