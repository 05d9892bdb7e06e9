// attack: start the own program anew, which would be without what the zygote set up
// layers: seccomp landlock namespaces
// outcome: EPERM
// note: a child is started, which tells through a pipe what refused it; the pipe closes when nothing does
#include "attack.h"

static long start(void) {
    char *arguments[] = {"itself", NULL}, *none[] = {NULL};
    return raw(SYS_execve, "/proc/self/exe", arguments, none);
}

long attack(void) {
    int ends[2];
    long refusal = 0;
    TRY(raw(SYS_pipe2, ends, O_CLOEXEC));
    long child = raw(SYS_clone, SIGCHLD);
    if (child < 0) return start();
    if (child == 0) {
        refusal = start();
        _exit(write(ends[1], &refusal, sizeof refusal) < 0);
    }
    close(ends[1]);
    if (read(ends[0], &refusal, sizeof refusal) < 0) refusal = -errno;
    close(ends[0]);
    kill((pid_t)child, SIGKILL);
    waitpid((pid_t)child, NULL, 0);
    return refusal;
}
