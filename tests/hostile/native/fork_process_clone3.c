// attack: start a process with clone3, whose arguments no filter can see
// layers: seccomp
// outcome: ENOSYS
#include "attack.h"
#include <linux/sched.h>

long attack(void) {
    struct clone_args how = {.exit_signal = SIGCHLD};
    long child = TRY(raw(SYS_clone3, &how, sizeof how));
    if (child == 0) _exit(0);
    return waitpid((pid_t)child, NULL, 0);
}
