// attack: signal the zygote with the call that is allowed for the worker itself
// layers: seccomp landlock
// outcome: EPERM
// needs: landlock 6
#include "attack.h"

long attack(void) {
    long parent = raw(SYS_getppid);
    return raw(SYS_tgkill, parent, parent, 0);
}
