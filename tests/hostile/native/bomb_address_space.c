// attack: reserve 64 GiB of addresses without using them
// layers: limits
// outcome: limit
#include "attack.h"

long attack(void) {
    return raw(SYS_mmap, NULL, 64L << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
