// attack: keep memory from being swapped out
// layers: seccomp limits+privileges
// user layers: seccomp limits
// outcome: EPERM
// note: root may lock without a limit, and everybody else a little
#include "attack.h"

long attack(void) {
    long page = TRY(map_private(4096));
    return raw(SYS_mlock, page, 4096);
}
