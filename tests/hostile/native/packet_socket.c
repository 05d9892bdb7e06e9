// attack: open a socket that sees every packet
// layers: seccomp privileges
// outcome: EPERM
// needs: root
// needs: feature packet sockets
// note: in a namespace there are no packets, which the call does not tell
#include "attack.h"

long attack(void) {
    return raw(SYS_socket, AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0x0300); // ETH_P_ALL, network order
}
