// attack: make a pair of sockets of a kind that is not needed
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    int pair[2];
    return raw(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, pair);
}
