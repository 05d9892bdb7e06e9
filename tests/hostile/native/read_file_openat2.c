// attack: read a file of the host with openat2, whose arguments no filter can see
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"
#include <linux/openat2.h>

long attack(void) {
    struct open_how how = {.flags = O_RDONLY};
    return raw(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof how);
}
