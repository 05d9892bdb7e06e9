// attack: start a process in a pid namespace of its own
// layers: seccomp privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    long child = TRY(raw(SYS_clone, CLONE_NEWPID | SIGCHLD));
    if (child == 0) _exit(0);
    return waitpid((pid_t)child, NULL, 0);
}
