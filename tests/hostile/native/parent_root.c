// attack: reach a file through the zygote's root
// layers: seccomp landlock namespaces privileges
// user layers: seccomp landlock namespaces hardening
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return read_byte(of_parent("root/etc/passwd").name);
}
