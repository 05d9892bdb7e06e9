// attack: move waiters from one lock to another
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <linux/futex.h>

long attack(void) {
    static uint32_t from, to;
    return raw(SYS_futex, &from, FUTEX_CMP_REQUEUE, 1, 1, &to, 0);
}
