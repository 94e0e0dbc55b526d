// Stands in for libecho_rt.a in tests of target=adaptive: it deals out managed memory, mapped memory and nothing by a seed, so that pairs
// that were proved together are merged in every mixture, round by round.
#include <stdint.h>
#include <stdlib.h>

extern int cudaMallocManaged(void **, size_t, unsigned);
extern int cudaHostAlloc(void **, size_t, unsigned);
extern int cudaFree(void *);
extern int cudaFreeHost(void *);
extern int cudaDeviceSynchronize(void);

enum { MAX = 4096 };
static struct { void *address; int mapped; } live[MAX];
static uint64_t state;
static int seeded;

static unsigned next(void) {
  if (!seeded) {
    const char *seed = getenv("MIXED_RUNTIME_SEED");
    state = seed ? strtoull(seed, 0, 10) : 0;
    seeded = 1;
  }
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33);
}

void *echo_rt_create(size_t bytes, size_t threshold, unsigned facts, const char *site) {
  (void)site;
  unsigned choice = next() % 3;
  // Without S5 (facts bit 0) the access mode may forbid managed memory.
  if (choice == 0 && !(facts & 1))
    choice = 1;
  if (choice == 2 || bytes == 0 || bytes < threshold)
    return 0;
  void *address = 0;
  if (choice == 0 ? cudaMallocManaged(&address, bytes, 1) : cudaHostAlloc(&address, bytes, 2))
    abort();
  for (int i = 0; i < MAX; i++)
    if (!live[i].address) {
      live[i].address = address;
      live[i].mapped = choice == 1;
      return address;
    }
  abort();
}

int echo_rt_release(void *address) {
  if (!address)
    return 0;
  for (int i = 0; i < MAX; i++)
    if (live[i].address == address) {
      live[i].address = 0;
      if (!live[i].mapped)
        return cudaFree(address);
      int waited = cudaDeviceSynchronize(), freed = cudaFreeHost(address);
      return waited ? waited : freed;
    }
  abort(); // released twice, or never made
}
