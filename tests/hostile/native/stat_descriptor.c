// attack: stat the channel by descriptor: harmless by itself, but newfstatat takes paths as well
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct stat found;
    return raw(SYS_newfstatat, 3, "", &found, AT_EMPTY_PATH);
}
