// attack: open a descriptor anew, with other rights
// layers: seccomp namespaces
// outcome: EPERM
// note: Landlock lets pipes pass, which are on no mounted file system
#include "attack.h"

long attack(void) {
    return raw(SYS_openat, AT_FDCWD, "/proc/self/fd/0", O_RDWR | O_CLOEXEC | O_NONBLOCK);
}
