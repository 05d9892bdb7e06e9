// attack: make own code writable and executable again, in two steps
// layers: seccomp mdwe
// outcome: EPERM
// needs: kernel 6.3
// note: the second step is what MDWE refuses, so the page is one that nobody calls
#include "attack.h"

__attribute__((aligned(4096), used)) static void page_of_code(void) {
    __asm__ volatile(".skip 8192");
}

long attack(void) {
    long page = ((long)page_of_code + 4095) & ~4095L;
    TRY(raw(SYS_mprotect, page, 4096, PROT_READ | PROT_WRITE));
    *(volatile char *)page = 0;
    return raw(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC);
}
