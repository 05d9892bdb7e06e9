// attack: connect to a service with a path (as docker.sock has), open to everybody
// layers: seccomp landlock namespaces
// outcome: EPERM
// needs: landlock 9
// note: before Landlock 9 seccomp and namespaces alone hold it
#include "attack.h"
#include <sys/prctl.h>
#include <sys/un.h>

static struct sockaddr_un address = {.sun_family = AF_UNIX};

// The path must exist for as long as the zygote may have workers, and not longer: a process of its own waits
// for the end of all who hold the other end of a pipe.
static void keep_path(void) {
    int held[2];
    char end;
    if (pipe2(held, O_CLOEXEC) < 0) return;
    pid_t keeper = fork();
    if (keeper == 0) {
        if (fork() != 0) _exit(0);
        setsid();
        dup2(held[0], 0);
        syscall(SYS_close_range, 1, ~0U, 0);
        while (read(0, &end, 1) < 0 && errno == EINTR) continue;
        unlink(address.sun_path);
        _exit(0);
    }
    waitpid(keeper, NULL, 0);
    close(held[0]);
    out_of_the_way(held[1]);
}

__attribute__((constructor)) static void serve(void) {
    int server = out_of_the_way(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    strcpy(address.sun_path, temporary("-service").name);
    unlink(address.sun_path);
    if (bind(server, (struct sockaddr *)&address, sizeof address) < 0) return;
    chmod(address.sun_path, 0777);
    listen(server, 8);
    keep_path();
}

long attack(void) {
    long client = TRY(raw(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return raw(SYS_connect, client, &address, sizeof address);
}
