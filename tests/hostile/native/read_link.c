// attack: learn where the program lies
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    char target[256];
    return raw(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", target, sizeof target);
}
