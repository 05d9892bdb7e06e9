// attack: list what the host has mounted
// layers: seccomp
// outcome: EPERM
// needs: kernel 6.8
// note: in a mount namespace the list is that of the empty root
#include "attack.h"
#include <linux/types.h>

struct request {
    __u32 size, spare;
    __u64 mount, after;
};

long attack(void) {
    const __u64 from_the_root = ~0ULL;
    struct request request = {.size = sizeof request, .mount = from_the_root};
    __u64 mounts[16];
    return raw(SYS_listmount, &request, mounts, 16);
}
