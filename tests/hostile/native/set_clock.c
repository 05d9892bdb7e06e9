// attack: set the clock of the host (to the time that it shows)
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"
#include <time.h>

long attack(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return raw(SYS_clock_settime, CLOCK_REALTIME, &now);
}
