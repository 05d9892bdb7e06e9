// attack: swap to a file; there is none of that name, which is looked at after the permission
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"

long attack(void) {
    return reached(raw(SYS_swapon, "/lockhouse-attack-without-file", 0), ENOENT);
}
