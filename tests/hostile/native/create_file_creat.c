// attack: make a file with creat
// layers: seccomp landlock namespaces
// outcome: EPERM
// needs: x86_64
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    TRY(raw(SYS_creat, path.name, 0600));
    remove_file(path);
    return 0;
}
