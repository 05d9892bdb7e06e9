// attack: ask the kernel for an interface that is up
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"
#include <linux/rtnetlink.h>
#include <net/if.h>

long attack(void) {
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
    } request = {.head = {.nlmsg_len = sizeof request, .nlmsg_type = RTM_GETLINK,
                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    static char answer[32 * 1024] __attribute__((aligned(8)));
    long kernel = TRY(raw(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    TRY(raw(SYS_sendto, kernel, &request, sizeof request, 0, NULL, 0));
    for (;;) {
        long length = TRY(raw(SYS_recvfrom, kernel, answer, sizeof answer, 0, NULL, NULL));
        struct nlmsghdr *part = (struct nlmsghdr *)answer;
        for (; NLMSG_OK(part, length); part = NLMSG_NEXT(part, length)) {
            if (part->nlmsg_type != RTM_NEWLINK) return -ENODEV;
            if (((struct ifinfomsg *)NLMSG_DATA(part))->ifi_flags & IFF_UP) return 0;
        }
    }
}
