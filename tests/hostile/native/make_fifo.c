// attack: make a named pipe
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    TRY(raw(SYS_mknodat, AT_FDCWD, path.name, S_IFIFO | 0600, 0));
    remove_file(path);
    return 0;
}
