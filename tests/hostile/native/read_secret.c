// attack: read a file of the host that only root may read
// layers: seccomp landlock namespaces privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    return read_byte("/etc/shadow");
}
