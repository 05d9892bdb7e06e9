// attack: open a socket to the machine that runs this virtual one
// layers: seccomp
// outcome: EPERM
// needs: feature vsock
// note: no namespace covers it
#include "attack.h"

long attack(void) {
    return raw(SYS_socket, AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
}
