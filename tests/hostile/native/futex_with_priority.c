// attack: take a lock that inherits priorities (the way of CVE-2014-3153)
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <linux/futex.h>

long attack(void) {
    static uint32_t lock;
    return raw(SYS_futex, &lock, FUTEX_LOCK_PI, 0, NULL);
}
