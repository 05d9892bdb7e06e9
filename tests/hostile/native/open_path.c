// attack: hold on to a file of the host with O_PATH, which Landlock does not check
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return raw(SYS_openat, AT_FDCWD, "/etc/passwd", O_PATH | O_CLOEXEC);
}
