// attack: start a process
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    long child = TRY(raw(SYS_clone, SIGCHLD));
    if (child == 0) _exit(0);
    return waitpid((pid_t)child, NULL, 0);
}
