// attack: set an alarm
// layers: seccomp
// outcome: EPERM
// needs: x86_64
#include "attack.h"

long attack(void) {
    long before = TRY(raw(SYS_alarm, 100));
    raw(SYS_alarm, 0);
    return before;
}
