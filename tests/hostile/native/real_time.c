// attack: run before everybody else
// layers: seccomp privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    struct sched_param first = {.sched_priority = 1}, ordinary = {0};
    TRY(raw(SYS_sched_setscheduler, 0, SCHED_FIFO, &first));
    return raw(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary);
}
