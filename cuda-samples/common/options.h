// Command line of the samples: [size] [--iterations K]
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Options {
    size_t size;
    int iterations;
};

static inline void usage(const char *program, const char *size_name) {
    fprintf(stderr, "usage: %s [%s] [--iterations K]\n", program, size_name);
    exit(2);
}

// A whole number from 1 to `most`; anything else ends the program with the usage line.
static inline size_t parse_number(const char *text, size_t most, const char *program, const char *size_name) {
    char *end = nullptr;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value == 0 || value > most) {
        fprintf(stderr, "%s: '%s' is not a number from 1 to %zu\n", program, text, most);
        usage(program, size_name);
    }
    return static_cast<size_t>(value);
}

static inline Options parse_options(int argc, char **argv, const char *size_name, size_t size, size_t most,
                                    int iterations) {
    Options options = {size, iterations};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--iterations") == 0) {
            if (++i == argc) usage(argv[0], size_name);
            options.iterations = static_cast<int>(parse_number(argv[i], 1000000, argv[0], size_name));
        } else {
            options.size = parse_number(argv[i], most, argv[0], size_name);
        }
    }
    return options;
}
