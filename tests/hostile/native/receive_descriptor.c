// attack: receive with room for a descriptor
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    int pair[2];
    char byte, room[64];
    TRY(raw(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair));
    TRY(raw(SYS_write, pair[0], "x", 1));
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    return raw(SYS_recvmsg, pair[1], &message, MSG_DONTWAIT);
}
