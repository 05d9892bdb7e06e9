// attack: open a socket to the kernel's ciphers
// layers: seccomp
// outcome: EPERM
// needs: feature AF_ALG
// note: a kernel without CONFIG_CRYPTO_USER_API has nothing to show here
#include "attack.h"

long attack(void) {
    return raw(SYS_socket, AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}
