// attack: make a file
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    TRY(make_file(path));
    remove_file(path);
    return 0;
}
