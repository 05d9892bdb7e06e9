// attack: have memory that the kernel itself does not see
// layers: seccomp
// outcome: EPERM
// needs: feature memfd_secret
#include "attack.h"

long attack(void) {
    return raw(SYS_memfd_secret, O_CLOEXEC);
}
