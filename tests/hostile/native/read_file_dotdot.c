// attack: climb out of the root with a relative path
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return read_byte("../../../../../../../../../../../../../../../../etc/passwd");
}
