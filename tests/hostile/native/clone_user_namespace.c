// attack: start a process in a user namespace of its own, where it has every capability
// layers: seccomp
// outcome: EPERM
// needs: feature user namespaces
#include "attack.h"

long attack(void) {
    long child = TRY(raw(SYS_clone, CLONE_NEWUSER | SIGCHLD));
    if (child == 0) _exit(0);
    return waitpid((pid_t)child, NULL, 0);
}
