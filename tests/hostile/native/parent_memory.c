// attack: open the zygote's memory
// layers: seccomp landlock namespaces privileges
// user layers: seccomp landlock namespaces hardening
// outcome: EPERM
// needs: user sysctl kernel.yama.ptrace_scope=0
#include "attack.h"

long attack(void) {
    return raw(SYS_openat, AT_FDCWD, of_parent("mem").name, O_RDWR | O_CLOEXEC);
}
