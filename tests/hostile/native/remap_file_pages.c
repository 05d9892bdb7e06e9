// attack: reorder the pages of a shared mapping
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    long pages = TRY(raw(SYS_mmap, NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    return raw(SYS_remap_file_pages, pages, 4096, 0, 1, 0);
}
