// attack: read what /sys says of the hardware
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return read_byte("/sys/devices/system/cpu/online");
}
