// attack: connect over TCP by sending at once, which is not a connect to the kernel's checks
// layers: seccomp namespaces landlock
// outcome: EPERM
// needs: feature TCP fast open (the client's, which is the default)
// needs: landlock 4
// needs: patched landlock
// note: Landlock had no check on this way; Debian's 6.12.117 and Ubuntu's 6.8.0-151 have one, 6.18.44 has none
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
    long client = TRY(raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return raw(SYS_sendto, client, "x", 1, MSG_FASTOPEN, &address, sizeof address);
}
