// attack: read the command line of the zygote
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return read_byte(of_parent("cmdline").name);
}
