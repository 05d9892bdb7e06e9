// attack: open a socket that sends packets with headers of its own
// layers: seccomp privileges
// outcome: EPERM
// needs: root
#include "attack.h"
#include <netinet/in.h>

long attack(void) {
    return raw(SYS_socket, AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
}
