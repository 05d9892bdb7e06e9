// attack: send to a service with a name in no directory
// layers: seccomp landlock namespaces
// outcome: EPERM
// needs: landlock 6
#include "attack.h"
#include <sys/un.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t length;

// A name that the kernel chooses.
__attribute__((constructor)) static void serve(void) {
    int server = out_of_the_way(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    bind(server, (struct sockaddr *)&address, sizeof address.sun_family);
    length = sizeof address;
    getsockname(server, (struct sockaddr *)&address, &length);
}

long attack(void) {
    long client = TRY(raw(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return raw(SYS_sendto, client, "x", 1, MSG_DONTWAIT, &address, length);
}
