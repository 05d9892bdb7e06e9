// attack: read what the zygote has open as descriptor 200
// layers: descriptors
// outcome: EBADF
// note: to read is allowed to every worker, so nothing but closing holds this
#include "attack.h"

long attack(void) {
    char byte;
    return raw(SYS_read, 200, &byte, 1);
}
