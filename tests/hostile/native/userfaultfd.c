// attack: handle own page faults, and so stop the kernel in the middle of a copy
// layers: seccomp
// outcome: SIGSYS
// needs: feature userfaultfd
// needs: kernel 5.11
#include "attack.h"

long attack(void) {
    const int user_mode_only = 1;
    return raw(SYS_userfaultfd, user_mode_only | O_CLOEXEC);
}
