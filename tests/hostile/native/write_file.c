// attack: open a file of the host to write it
// layers: seccomp landlock namespaces privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    return raw(SYS_openat, AT_FDCWD, "/etc/passwd", O_WRONLY | O_CLOEXEC);
}
