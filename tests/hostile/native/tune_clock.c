// attack: tune the clock of the host (to the tick that it has)
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"
#include <sys/timex.h>

long attack(void) {
    struct timex clock = {.modes = 0};
    TRY(raw(SYS_adjtimex, &clock));
    clock.modes = ADJ_TICK;
    return raw(SYS_adjtimex, &clock);
}
