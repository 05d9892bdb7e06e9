// attack: enter a user namespace and have every capability in it
// layers: seccomp
// outcome: SIGSYS
// needs: feature user namespaces
#include "attack.h"

long attack(void) {
    return raw(SYS_unshare, CLONE_NEWUSER);
}
