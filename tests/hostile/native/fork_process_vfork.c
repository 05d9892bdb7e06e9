// attack: start a process that borrows this one's memory
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    pid_t child = vfork();
    if (child == 0) _exit(0);
    return child < 0 ? -errno : waitpid(child, NULL, 0);
}
