// attack: let others look into this process
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <sys/prctl.h>

long attack(void) {
    return raw(SYS_prctl, PR_SET_DUMPABLE, 1);
}
