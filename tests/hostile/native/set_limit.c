// attack: set a limit above that of a worker, as a process that may not raise any
// layers: seccomp limits
// outcome: EPERM
#include "attack.h"
#include <linux/capability.h>

long attack(void) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}, {0}};
    struct rlimit descriptors = {128, 128};
    TRY(raw(SYS_capset, &head, none));
    return raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &descriptors, NULL);
}
