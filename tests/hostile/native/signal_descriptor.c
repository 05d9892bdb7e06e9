// attack: receive signals by a descriptor
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    uint64_t signals = 1 << (SIGUSR1 - 1);
    return raw(SYS_signalfd4, -1, &signals, sizeof signals, O_CLOEXEC);
}
