// attack: set the I/O priority of the zygote (to what it is)
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    const int process = 1;
    long parent = raw(SYS_getppid);
    long priority = TRY(raw(SYS_ioprio_get, process, parent));
    return raw(SYS_ioprio_set, process, parent, priority);
}
