// attack: learn size and times of a file of the host; Landlock has no right for this
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct stat found;
    return raw(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &found, 0);
}
