// attack: signal the zygote (signal 0: the permission alone)
// layers: seccomp landlock
// outcome: EPERM
// needs: landlock 6
#include "attack.h"

long attack(void) {
    return raw(SYS_kill, raw(SYS_getppid), 0);
}
