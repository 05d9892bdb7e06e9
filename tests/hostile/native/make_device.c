// attack: make a device (the null device)
// layers: seccomp landlock namespaces privileges
// outcome: EPERM
// needs: root
#include "attack.h"
#include <sys/sysmacros.h>

long attack(void) {
    struct path path = temporary("");
    TRY(raw(SYS_mknodat, AT_FDCWD, path.name, S_IFCHR | 0600, makedev(1, 3)));
    remove_file(path);
    return 0;
}
