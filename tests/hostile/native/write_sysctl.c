// attack: open a setting of the kernel to write it
// layers: seccomp landlock namespaces privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    return raw(SYS_openat, AT_FDCWD, "/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
}
