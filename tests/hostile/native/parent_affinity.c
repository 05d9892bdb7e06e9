// attack: say on which processors the zygote runs (those where it does)
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    char processors[1024] = {0};
    long parent = raw(SYS_getppid);
    long size = TRY(raw(SYS_sched_getaffinity, parent, sizeof processors, processors));
    return raw(SYS_sched_setaffinity, parent, size, processors);
}
