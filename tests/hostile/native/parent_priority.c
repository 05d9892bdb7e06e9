// attack: set the priority of the zygote (to what it is)
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    long parent = raw(SYS_getppid);
    long nice = 20 - TRY(raw(SYS_getpriority, PRIO_PROCESS, parent));
    return raw(SYS_setpriority, PRIO_PROCESS, parent, nice);
}
