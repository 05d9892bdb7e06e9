// attack: offer a service with a path
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"
#include <sys/un.h>

long attack(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct path path = temporary("");
    strcpy(address.sun_path, path.name);
    long server = TRY(raw(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    TRY(raw(SYS_bind, server, &address, sizeof address));
    remove_file(path);
    return 0;
}
