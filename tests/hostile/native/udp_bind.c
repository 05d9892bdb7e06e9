// attack: receive over UDP
// layers: seccomp
// outcome: EPERM
// note: in a namespace nobody is there to send, which the call does not tell
#include "attack.h"
#include <netinet/in.h>

long attack(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    long server = TRY(raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return raw(SYS_bind, server, &address, sizeof address);
}
