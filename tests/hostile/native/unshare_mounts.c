// attack: get mounts of its own
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"

long attack(void) {
    return raw(SYS_unshare, CLONE_NEWNS);
}
