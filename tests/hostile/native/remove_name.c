// attack: remove a file
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    TRY(make_file(path));
    return raw(SYS_unlinkat, AT_FDCWD, path.name, 0);
}
