// attack: take root's group as a further one
// layers: seccomp privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    unsigned root = 0;
    return raw(SYS_setgroups, 1, &root);
}
