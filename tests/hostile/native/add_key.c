// attack: put a key into a keyring of the kernel
// layers: seccomp
// outcome: SIGSYS
// needs: feature keyrings
#include "attack.h"
#include <linux/keyctl.h>

long attack(void) {
    return raw(SYS_add_key, "user", "lockhouse-attack", "x", 1, KEY_SPEC_PROCESS_KEYRING);
}
