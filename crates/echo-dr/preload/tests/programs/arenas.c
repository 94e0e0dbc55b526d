// How many arenas the C library's malloc has, a while after a large block was allocated: one for each thread that has allocated.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
    char *volatile block = malloc(1000000);
    free(block);
    usleep(200000);
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (!file || malloc_info(0, file) != 0 || fclose(file) != 0) return 1;
    int arenas = 0;
    for (const char *at = text; (at = strstr(at, "<heap nr=")) != NULL; at++) arenas++;
    printf("%d\n", arenas);
    return 0;
}
