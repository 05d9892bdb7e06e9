// attack: have a descriptor with a number above those of a worker
// layers: limits
// outcome: limit
#include "attack.h"

long attack(void) {
    return raw(SYS_fcntl, 0, F_DUPFD_CLOEXEC, 64);
}
