// attack: make a timer with a descriptor
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <time.h>

long attack(void) {
    return raw(SYS_timerfd_create, CLOCK_MONOTONIC, O_CLOEXEC);
}
