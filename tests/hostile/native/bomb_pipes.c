// attack: fill as many pipes as there can be: kernel memory that no limit of memory counts
// layers: limits
// outcome: limit
#include "attack.h"

long attack(void) {
    static const char page[4096];
    int ends[2];
    for (int count = 0; count < 64; count++) {
        TRY(raw(SYS_pipe2, ends, O_NONBLOCK));
        while (raw(SYS_write, ends[1], page, sizeof page) > 0) continue;
    }
    return 0;
}
