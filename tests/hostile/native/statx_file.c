// attack: learn size and times of a file of the host with statx
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct statx found;
    return raw(SYS_statx, AT_FDCWD, "/etc/passwd", 0, STATX_BASIC_STATS, &found);
}
