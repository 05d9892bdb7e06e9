// attack: signal the zygote with tkill
// layers: seccomp landlock
// outcome: EPERM
// needs: landlock 6
#include "attack.h"

long attack(void) {
    return raw(SYS_tkill, raw(SYS_getppid), 0);
}
