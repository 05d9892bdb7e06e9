// attack: open the zygote's environment
// layers: seccomp landlock namespaces privileges
// user layers: seccomp landlock namespaces hardening
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return open_read(of_parent("environ").name);
}
