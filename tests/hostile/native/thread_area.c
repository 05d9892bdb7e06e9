// attack: set a base register of this process
// layers: seccomp
// outcome: EPERM
// needs: x86_64
#include "attack.h"

long attack(void) {
    const int set_gs = 0x1001;
    return raw(SYS_arch_prctl, set_gs, 0);
}
