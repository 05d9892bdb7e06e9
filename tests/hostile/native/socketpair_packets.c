// attack: make a pair of sockets that keeps the bounds of messages
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    int pair[2];
    return raw(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET, 0, pair);
}
