// attack: attach to shared memory that others of the host use
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"
#include <sys/shm.h>

static int segment = -1;

// Marked for removal at once: it stays for as long as somebody has it attached.
__attribute__((constructor)) static void share(void) {
    segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
    shmat(segment, NULL, 0);
    shmctl(segment, IPC_RMID, NULL);
}

long attack(void) {
    return raw(SYS_shmat, segment, NULL, SHM_RDONLY);
}
