// attack: open a socket to a part of the kernel
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <linux/netlink.h>

long attack(void) {
    return raw(SYS_socket, AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
}
