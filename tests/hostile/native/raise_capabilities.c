// attack: make one capability effective
// layers: seccomp privileges
// outcome: EPERM
// needs: root
#include "attack.h"
#include <linux/capability.h>

long attack(void) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{0}, {0}};
    sets[0].effective = sets[0].permitted = 1 << CAP_NET_RAW;
    return raw(SYS_capset, &head, sets);
}
