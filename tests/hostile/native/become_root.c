// attack: become root
// layers: seccomp privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    return raw(SYS_setresuid, 0, 0, 0);
}
