// attack: learn how full a file system of the host is
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"
#include <sys/statfs.h>

long attack(void) {
    struct statfs found;
    return raw(SYS_statfs, "/etc", &found);
}
