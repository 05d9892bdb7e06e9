// attack: set an interval timer
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <sys/time.h>

long attack(void) {
    struct itimerval never = {{0, 0}, {0, 0}};
    return raw(SYS_setitimer, ITIMER_REAL, &never, NULL);
}
