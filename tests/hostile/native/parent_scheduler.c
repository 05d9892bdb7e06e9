// attack: say how the zygote is scheduled (as it is)
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct sched_param ordinary = {0};
    return raw(SYS_sched_setscheduler, raw(SYS_getppid), SCHED_OTHER, &ordinary);
}
