// attack: read a file of the host that everybody may read
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return read_byte("/etc/passwd");
}
