// attack: ask for an address in the zygote
// layers: seccomp landlock privileges
// user layers: seccomp landlock hardening
// outcome: EPERM
#include "attack.h"

long attack(void) {
    void *head;
    size_t size;
    return raw(SYS_get_robust_list, raw(SYS_getppid), &head, &size);
}
