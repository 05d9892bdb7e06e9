// attack: get a descriptor for the zygote, with which to wait for it or to signal it
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return raw(SYS_pidfd_open, raw(SYS_getppid), 0);
}
