// attack: have more threads than a worker may
// layers: none
// user layers: limits+namespaces
// outcome: limit
// note: processes are counted by user, so the limit is set only in an own user namespace: root has none
#include "attack.h"
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>

static uint32_t never;

static void *wait_for_ever(void *nothing) {
    for (;;) raw(SYS_futex, &never, FUTEX_WAIT, 0, NULL);
    return nothing;
}

long attack(void) {
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    for (int count = 0; count < 300; count++) TRY(-pthread_create(&thread, &small, wait_for_ever, NULL));
    return 0;
}
