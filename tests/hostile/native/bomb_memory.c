// attack: have 1 GiB of memory, four times the default budget of a worker
// layers: limits
// outcome: limit
// note: what is mapped counts, so one touch in each MiB will do
#include "attack.h"

long attack(void) {
    const long step = 64L << 20;
    for (long used = 0; used < 16 * step; used += step) {
        long piece = TRY(map_private(step));
        for (long at = 0; at < step; at += 1 << 20) ((volatile char *)piece)[at] = 1;
    }
    return 0;
}
