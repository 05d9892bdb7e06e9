// attack: send several messages in one call, whose arguments no filter can see
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    int pair[2];
    TRY(raw(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair));
    struct iovec part = {"x", 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    return raw(SYS_sendmmsg, pair[0], &message, 1, 0);
}
