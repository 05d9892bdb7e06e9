// attack: offer a service over TCP
// layers: seccomp landlock
// outcome: EPERM
// needs: landlock 4
// note: in a namespace nobody is there to connect, which the call does not tell
#include "attack.h"
#include <netinet/in.h>

long attack(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    long server = TRY(raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    TRY(raw(SYS_bind, server, &address, sizeof address));
    return raw(SYS_listen, server, 1);
}
