// attack: leave a copy of the memory on the disk
// layers: seccomp landlock namespaces privileges limits hardening
// user layers: seccomp landlock namespaces limits hardening
// outcome: EPERM
// needs: feature core files (a plain core_pattern, and a hard limit that is not 0)
// note: a signal with the core's flag is taken for success
#include "attack.h"
#include <stdlib.h>

static struct path place;

static long die(void) {
    struct rlimit large;
    TRY(raw(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &large));
    large.rlim_cur = large.rlim_max;
    TRY(raw(SYS_prlimit64, 0, RLIMIT_CORE, &large, NULL));
    TRY(raw(SYS_chdir, place.name));
    return raw(SYS_kill, raw(SYS_getpid), SIGQUIT);
}

long attack(void) {
    int status;
    place = temporary("");
    TRY(raw(SYS_mkdirat, AT_FDCWD, place.name, 0700));
    long child = raw(SYS_clone, SIGCHLD);
    if (child == 0) _exit((int)-die());
    if (child > 0 && waitpid((pid_t)child, &status, 0) < 0) child = -errno;
    struct path core, core_of_pid;
    snprintf(core.name, sizeof core.name, "%.48s/core", place.name);
    snprintf(core_of_pid.name, sizeof core_of_pid.name, "%.32s/core.%ld", place.name, child);
    remove_file(core);
    remove_file(core_of_pid);
    raw(SYS_unlinkat, AT_FDCWD, place.name, AT_REMOVEDIR);
    if (child < 0) return child;
    return WIFSIGNALED(status) && WCOREDUMP(status) ? 0 : -ENOENT;
}
