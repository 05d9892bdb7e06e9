// attack: make a symbolic link
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    TRY(raw(SYS_symlinkat, "/etc/passwd", AT_FDCWD, path.name));
    remove_file(path);
    return 0;
}
