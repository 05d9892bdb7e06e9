// attack: change the root directory
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"

long attack(void) {
    return raw(SYS_chroot, "/");
}
