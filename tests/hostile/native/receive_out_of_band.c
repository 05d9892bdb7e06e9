// attack: peek at what came out of band
// layers: seccomp
// outcome: EPERM
// note: nothing came, which is told after the filter
#include "attack.h"

long attack(void) {
    int pair[2];
    char byte;
    TRY(raw(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair));
    TRY(raw(SYS_write, pair[0], "x", 1));
    return raw(SYS_recvfrom, pair[1], &byte, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL);
}
