// attack: learn on which processors the zygote runs
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    char processors[1024];
    return raw(SYS_sched_getaffinity, raw(SYS_getppid), sizeof processors, processors);
}
