// attack: make a timer
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <time.h>

long attack(void) {
    struct sigevent silent = {.sigev_notify = SIGEV_NONE};
    int timer;
    return raw(SYS_timer_create, CLOCK_MONOTONIC, &silent, &timer);
}
