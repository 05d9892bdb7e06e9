// attack: have a network socket at all
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}
