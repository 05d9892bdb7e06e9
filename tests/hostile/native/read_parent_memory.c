// attack: read the zygote's memory
// layers: seccomp landlock privileges
// user layers: seccomp landlock hardening
// outcome: SIGSYS
// needs: user sysctl kernel.yama.ptrace_scope=0
#include "attack.h"
#include <sys/uio.h>

static char same_place = 'x';

long attack(void) {
    char byte;
    struct iovec here = {&byte, 1}, there = {&same_place, 1};
    return raw(SYS_process_vm_readv, raw(SYS_getppid), &here, 1, &there, 1, 0);
}
