// attack: ask whether a file of the host exists
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return raw(SYS_faccessat, AT_FDCWD, "/etc/passwd", F_OK);
}
