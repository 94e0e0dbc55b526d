// Built at fixed addresses: the address of malloc is that of a stub in the executable, under malloc's name.
#include <stdlib.h>

int main(void) {
    void *(*volatile allocate)(size_t) = malloc;
    void *block = allocate(1234567);
    int failed = block == NULL;
    free(block);
    return failed;
}
