// attack: take descriptor 200 out of the zygote
// layers: seccomp landlock privileges
// user layers: seccomp landlock hardening
// outcome: EPERM
// needs: user sysctl kernel.yama.ptrace_scope=0
#include "attack.h"

long attack(void) {
    char byte;
    long parent = TRY(raw(SYS_pidfd_open, raw(SYS_getppid), 0));
    long taken = TRY(raw(SYS_pidfd_getfd, parent, 200, 0));
    return raw(SYS_read, taken, &byte, 1);
}
