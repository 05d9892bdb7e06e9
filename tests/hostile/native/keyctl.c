// attack: get a keyring of its own
// layers: seccomp
// outcome: SIGSYS
// needs: feature keyrings
#include "attack.h"
#include <linux/keyctl.h>

long attack(void) {
    return raw(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1);
}
