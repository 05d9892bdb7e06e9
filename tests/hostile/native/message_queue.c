// attack: make a message queue with a name
// layers: seccomp landlock limits
// outcome: EPERM
// needs: feature POSIX message queues
// note: Landlock takes a queue for a file that is opened, and refuses it when it has been made already
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    const char *name = path.name + strlen("/tmp/");
    long queue = raw(SYS_mq_open, name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
    raw(SYS_mq_unlink, name);
    return queue;
}
