// attack: get access to the ports of the machine
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
// needs: x86_64
// needs: feature ioperm
#include "attack.h"

long attack(void) {
    return raw(SYS_ioperm, 0x80, 1, 1);
}
