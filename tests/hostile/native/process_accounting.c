// attack: have every process of the host written down; the file does not exist
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
// needs: feature process accounting
#include "attack.h"

long attack(void) {
    return reached(raw(SYS_acct, "/lockhouse-attack-without-file"), ENOENT);
}
