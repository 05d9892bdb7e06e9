// attack: offer a service with a name in no directory
// layers: seccomp
// outcome: EPERM
// note: Landlock restricts whom one may reach, not by whom one is reached; a namespace is empty
#include "attack.h"
#include <sys/un.h>

long attack(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    long server = TRY(raw(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    TRY(raw(SYS_bind, server, &address, sizeof address.sun_family));
    return raw(SYS_listen, server, 1);
}
