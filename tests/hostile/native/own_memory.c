// attack: write own code through /proc/self/mem, past the protection of its pages
// layers: seccomp landlock namespaces privileges
// user layers: seccomp landlock namespaces hardening
// outcome: EPERM
// note: privileges hold it because a process that has changed its user does not own its entries in /proc
#include "attack.h"

long attack(void) {
    return raw(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC);
}
