// Programs that are hard on a library that writes a file from inside them. The first argument says which.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// Large enough to be recorded; not inlined, so that the compiler does not take both calls out.
static void *volatile block;
__attribute__((noinline)) static void allocate(int times) {
    for (int i = 0; i < times; i++) {
        char *volatile mine = malloc(300000);
        if (mine != NULL) mine[5] = 1;
        free(mine);
    }
}

// Closes all descriptors and opens files of its own, in a folder, until each number is one of those.
static int descriptors(const char *folder) {
    allocate(10);
    usleep(200000); // The recorder has begun its file.
    for (int fd = 3; fd < 1100; fd++) close(fd);
    int mine[1100], count = 0;
    while (count < 1100) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%d", folder, count);
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0) break;
        mine[count++] = fd;
    }
    allocate(3000);
    usleep(200000);
    int wrong = 0;
    for (int i = 0; i < count; i++) wrong += lseek(mine[i], 0, SEEK_END) != 0;
    printf("%d files, %d of them written by somebody else\n", count, wrong);
    return count == 0 || wrong != 0;
}

static int size_limit(void) {
    const struct rlimit limit = {40000, 40000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    allocate(3000);
    usleep(200000);
    printf("alive\n");
    return 0;
}

static void *until_cancelled(void *ignored) {
    for (;;) {
        allocate(1);
        pthread_testcancel();
    }
    return ignored;
}

static int cancelled(void) {
    for (int round = 0; round < 20; round++) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            if (pthread_create(&threads[i], NULL, until_cancelled, NULL) != 0) return 2;
        usleep(2000);
        for (int i = 0; i < 3; i++) {
            void *result = NULL;
            pthread_cancel(threads[i]);
            pthread_join(threads[i], &result);
            if (result != PTHREAD_CANCELED) return 1;
        }
    }
    return 0;
}

static void *ten(void *ignored) {
    allocate(10);
    return ignored;
}

// Threads with stacks of a size that servers with many of them choose.
static int small_stacks(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 96 << 10);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, ten, NULL) != 0) return 2;
        pthread_join(thread, NULL);
    }
    return 0;
}

static int children(void) {
    allocate(10);
    char line[400];
    FILE *child = popen("/bin/echo hello 2>&1", "r");
    while (child != NULL && fgets(line, sizeof line, child) != NULL) fputs(line, stdout);
    return child == NULL || pclose(child) != 0;
}

static void *many(void *ignored) {
    allocate(3000);
    return ignored;
}

// Threads that find no memory, and go on.
static int memory_limit(void) {
    const struct rlimit limit = {60 << 20, 60 << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_t threads[50];
    int made = 0;
    while (made < 50 && pthread_create(&threads[made], &attributes, many, NULL) == 0) made++;
    for (int i = 0; i < made; i++) pthread_join(threads[i], NULL);
    int blocks = 0;
    for (; blocks < 1000; blocks++) {
        block = malloc(300000);
        if (block == NULL) break;
    }
    return made < 10 || blocks == 1000;
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    if (strcmp(how, "descriptors") == 0 && count > 2) return descriptors(arguments[2]);
    if (strcmp(how, "size-limit") == 0) return size_limit();
    if (strcmp(how, "cancelled") == 0) return cancelled();
    if (strcmp(how, "memory-limit") == 0) return memory_limit();
    if (strcmp(how, "small-stacks") == 0) return small_stacks();
    if (strcmp(how, "children") == 0) return children();
    return 2;
}
