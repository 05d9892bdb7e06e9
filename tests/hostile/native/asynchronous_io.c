// attack: make a queue for asynchronous input and output
// layers: seccomp
// outcome: EPERM
// needs: feature aio
#include "attack.h"

long attack(void) {
    unsigned long queue = 0;
    TRY(raw(SYS_io_setup, 1, &queue));
    return raw(SYS_io_destroy, queue);
}
