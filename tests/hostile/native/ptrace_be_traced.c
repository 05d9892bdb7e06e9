// attack: have the zygote trace this process
// layers: seccomp
// outcome: SIGSYS
#include "attack.h"
#include <sys/ptrace.h>

long attack(void) {
    return raw(SYS_ptrace, PTRACE_TRACEME);
}
