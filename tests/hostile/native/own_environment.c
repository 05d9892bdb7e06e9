// attack: read the environment and with it what the process was started for
// layers: seccomp landlock namespaces privileges
// user layers: seccomp landlock namespaces hardening
// outcome: EPERM
// note: privileges hold it because a process that has changed its user does not own its entries in /proc
#include "attack.h"

long attack(void) {
    return open_read("/proc/self/environ");
}
