// attack: read a file of the host with the old open
// layers: seccomp landlock namespaces
// outcome: EPERM
// needs: x86_64
#include "attack.h"

long attack(void) {
    return raw(SYS_open, "/etc/passwd", O_RDONLY);
}
