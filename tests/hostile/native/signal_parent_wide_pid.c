// attack: signal the zygote with high bits set in the pid, which the kernel ignores and a filter must too
// layers: seccomp landlock
// outcome: EPERM
// needs: landlock 6
#include "attack.h"

long attack(void) {
    long parent = raw(SYS_getppid);
    return raw(SYS_tgkill, parent | (1L << 32), parent, 0);
}
