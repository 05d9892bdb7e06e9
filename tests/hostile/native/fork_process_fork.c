// attack: start a process with the old fork
// layers: seccomp
// outcome: EPERM
// needs: x86_64
#include "attack.h"

long attack(void) {
    long child = TRY(raw(SYS_fork));
    if (child == 0) _exit(0);
    return waitpid((pid_t)child, NULL, 0);
}
