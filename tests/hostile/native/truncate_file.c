// attack: make a file longer by its name; Landlock and namespaces refuse to make the file already
// layers: seccomp landlock namespaces limits
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    TRY(make_file(path));
    long result = raw(SYS_truncate, path.name, 4096);
    remove_file(path);
    return result;
}
