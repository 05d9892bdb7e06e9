// attack: send to a service over UDP
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"
#include <netinet/in.h>

static struct sockaddr_in address = {.sin_family = AF_INET};

// A port that the kernel chooses.
__attribute__((constructor)) static void serve(void) {
    socklen_t length = sizeof address;
    int server = out_of_the_way(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(server, (struct sockaddr *)&address, sizeof address);
    getsockname(server, (struct sockaddr *)&address, &length);
}

long attack(void) {
    long client = TRY(raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return raw(SYS_sendto, client, "x", 1, 0, &address, sizeof address);
}
