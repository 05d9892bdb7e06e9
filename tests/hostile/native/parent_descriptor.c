// attack: open what the zygote holds as descriptor 200
// layers: seccomp landlock namespaces privileges
// user layers: seccomp landlock namespaces hardening
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return read_byte(of_parent("fd/200").name);
}
