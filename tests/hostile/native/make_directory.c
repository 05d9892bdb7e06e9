// attack: make a directory
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    TRY(raw(SYS_mkdirat, AT_FDCWD, path.name, 0700));
    return raw(SYS_unlinkat, AT_FDCWD, path.name, AT_REMOVEDIR);
}
