// attack: send out of band over a pair of sockets (the way of CVE-2025-38236)
// layers: seccomp
// outcome: EPERM
// needs: feature AF_UNIX out of band
#include "attack.h"

long attack(void) {
    int pair[2];
    TRY(raw(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair));
    return raw(SYS_sendto, pair[0], "x", 1, MSG_OOB, NULL, 0);
}
