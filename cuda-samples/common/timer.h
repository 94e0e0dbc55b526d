// Wall-clock time of a loop. It goes to stderr, so that stdout holds results alone.
#pragma once

#include <chrono>
#include <cstdio>

class Timer {
  public:
    Timer() : start_(std::chrono::steady_clock::now()) {}
    void report() const {
        const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start_;
        fprintf(stderr, "loop time: %.3f ms\n", spent.count());
    }

  private:
    std::chrono::steady_clock::time_point start_;
};
