// attack: connect over multipath TCP, which falls back to what every service speaks
// layers: seccomp namespaces
// outcome: EPERM
// needs: feature MPTCP
// note: Landlock's rights for TCP do not cover it
#include "attack.h"
#include <netinet/in.h>

static struct sockaddr_in address = {.sin_family = AF_INET};

// A port that the kernel chooses.
__attribute__((constructor)) static void serve(void) {
    socklen_t length = sizeof address;
    int server = out_of_the_way(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(server, (struct sockaddr *)&address, sizeof address);
    listen(server, 8);
    getsockname(server, (struct sockaddr *)&address, &length);
}

long attack(void) {
    const int mptcp = 262;
    long client = TRY(raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, mptcp));
    return raw(SYS_connect, client, &address, sizeof address);
}
