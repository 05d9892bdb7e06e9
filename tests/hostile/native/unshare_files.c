// attack: unshare without a namespace: allowed to everybody, and refused here with the rest
// layers: seccomp
// outcome: SIGSYS
#include "attack.h"

long attack(void) {
    return raw(SYS_unshare, CLONE_FILES | CLONE_FS);
}
