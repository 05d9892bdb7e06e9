// attack: move the end of the heap by 1 GiB
// layers: limits
// outcome: limit
#include "attack.h"

long attack(void) {
    long now = TRY(raw(SYS_brk, 0));
    long moved = TRY(raw(SYS_brk, now + (1L << 30)));
    raw(SYS_brk, now);
    return moved > now ? 0 : -ENOMEM;
}
