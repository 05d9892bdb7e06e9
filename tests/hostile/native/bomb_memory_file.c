// attack: keep 1 GiB in a file that is memory
// layers: seccomp limits
// outcome: EPERM
#include "attack.h"

long attack(void) {
    long file = TRY(raw(SYS_memfd_create, "bomb", MFD_CLOEXEC));
    return raw(SYS_ftruncate, file, 1L << 30);
}
