// attack: stop the zygote and control it
// layers: seccomp landlock privileges
// user layers: seccomp landlock hardening
// outcome: SIGSYS
// needs: user sysctl kernel.yama.ptrace_scope=0
#include "attack.h"
#include <sys/ptrace.h>

long attack(void) {
    long parent = raw(SYS_getppid);
    TRY(raw(SYS_ptrace, PTRACE_ATTACH, parent));
    TRY(raw(SYS_wait4, parent, NULL, __WALL, NULL));
    return raw(SYS_ptrace, PTRACE_DETACH, parent);
}
