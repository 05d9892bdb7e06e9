// attack: rename a file
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct path path = temporary(""), second = temporary("-second");
    TRY(make_file(path));
    long result = raw(SYS_renameat2, AT_FDCWD, path.name, AT_FDCWD, second.name, 0);
    remove_file(path);
    remove_file(second);
    return result;
}
