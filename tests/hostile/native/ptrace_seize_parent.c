// attack: control the zygote without stopping it
// layers: seccomp landlock privileges
// user layers: seccomp landlock hardening
// outcome: SIGSYS
// needs: user sysctl kernel.yama.ptrace_scope=0
#include "attack.h"
#include <sys/ptrace.h>

long attack(void) {
    return raw(SYS_ptrace, PTRACE_SEIZE, raw(SYS_getppid));
}
