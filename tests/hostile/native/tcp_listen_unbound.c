// attack: offer a service over TCP on a port that the kernel chooses, without bind
// layers: seccomp
// outcome: EPERM
// note: Landlock checks bind alone; in a namespace nobody is there to connect, which the call does not tell
#include "attack.h"
#include <netinet/in.h>

long attack(void) {
    long server = TRY(raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return raw(SYS_listen, server, 1);
}
