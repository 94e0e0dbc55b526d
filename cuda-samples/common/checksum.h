// Checksums that the samples print. They are exact, so two runs can be compared as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// FNV-1a over bytes: for the final result.
static inline uint64_t fnv1a(const void *data, size_t bytes, uint64_t hash = 14695981039346656037ull) {
    const unsigned char *byte = static_cast<const unsigned char *>(data);
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 1099511628211ull;
    return hash;
}

// Sum of the 32-bit words: as cheap as reading them once, for use inside a timed loop.
template <typename Word>
static inline uint32_t word_sum(const Word *data, size_t count) {
    static_assert(sizeof(Word) == 4, "32-bit words");
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, data + i, sizeof word);
        sum += word;
    }
    return sum;
}
