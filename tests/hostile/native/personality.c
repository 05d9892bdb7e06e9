// attack: make all that is readable executable
// layers: seccomp
// outcome: SIGSYS
#include "attack.h"
#include <sys/personality.h>

long attack(void) {
    return raw(SYS_personality, READ_IMPLIES_EXEC);
}
