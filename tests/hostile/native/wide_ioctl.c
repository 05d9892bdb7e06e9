// attack: ask with high bits set in the request, which the kernel ignores and a filter must too
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <sys/ioctl.h>

long attack(void) {
    int count;
    return raw(SYS_ioctl, 0, FIONREAD | (1L << 32), &count);
}
