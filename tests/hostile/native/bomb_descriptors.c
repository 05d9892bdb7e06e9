// attack: have more descriptors than a worker may
// layers: limits
// outcome: limit
#include "attack.h"

long attack(void) {
    for (int count = 0; count < 128; count++) TRY(raw(SYS_eventfd2, 0, 0));
    return 0;
}
