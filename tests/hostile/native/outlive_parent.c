// attack: ask not to be ended with the zygote
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <sys/prctl.h>

long attack(void) {
    return raw(SYS_prctl, PR_SET_PDEATHSIG, 0);
}
