// attack: become a member of root's group
// layers: seccomp privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    return raw(SYS_setresgid, 0, 0, 0);
}
