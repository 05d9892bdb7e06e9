// attack: send a descriptor over a pair of sockets
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    int pair[2];
    TRY(raw(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair));
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&control.head), &pair[1], sizeof(int));
    struct iovec part = {"x", 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    return raw(SYS_sendmsg, pair[0], &message, 0);
}
