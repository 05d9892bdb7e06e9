// attack: connect to a service over TCP and IPv6
// layers: seccomp landlock namespaces
// outcome: EPERM
// needs: landlock 4
// needs: feature IPv6
#include "attack.h"
#include <netinet/in.h>

static struct sockaddr_in6 address = {.sin6_family = AF_INET6};

// A port that the kernel chooses.
__attribute__((constructor)) static void serve(void) {
    socklen_t length = sizeof address;
    int server = out_of_the_way(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address.sin6_addr.s6_addr[15] = 1;
    bind(server, (struct sockaddr *)&address, sizeof address);
    listen(server, 8);
    getsockname(server, (struct sockaddr *)&address, &length);
}

long attack(void) {
    long client = TRY(raw(SYS_socket, AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return raw(SYS_connect, client, &address, sizeof address);
}
