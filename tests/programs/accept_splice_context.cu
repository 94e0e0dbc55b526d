// EXPECT c.host c.device accept
// A structure of pointers goes by address through functions that are not inlined; a helper of a helper allocates the host buffer.
#include "common.h"
struct Context {
    float *host, *device;
    int n;
    const char *name;
};
__attribute__((noinline)) float *host_array(int n) {
    float *array = (float *)malloc(n * sizeof(float));
    if (!array) {
        std::fprintf(stderr, "no memory\n");
        std::exit(1);
    }
    return array;
}
__attribute__((noinline)) bool init(Context *c, int n) {
    c->n = n;
    c->name = "context";
    c->host = host_array(n);
    return cudaMalloc(&c->device, n * sizeof(float)) == cudaSuccess;
}
__attribute__((noinline)) void fill(Context *c) {
    for (int i = 0; i < c->n; i++) c->host[i] = i;
}
__attribute__((noinline)) void run(Context *c) {
    CHECK(cudaMemcpy(c->device, c->host, c->n * sizeof(float), cudaMemcpyHostToDevice));
    twice<<<blocks(c->n), BLOCK>>>(c->device, c->n);
    CHECK(cudaMemcpy(c->host, c->device, c->n * sizeof(float), cudaMemcpyDeviceToHost));
}
__attribute__((noinline)) void verify(const Context *c) { print_sum(c->name, c->host, c->n * sizeof(float)); }
__attribute__((noinline)) void destroy(Context *c) {
    free(c->host);
    CHECK(cudaFree(c->device));
}
int main(int argc, char **argv) {
    Context c;
    if (!init(&c, size_argument(argc, argv, 100000))) return 1;
    fill(&c);
    run(&c);
    verify(&c);
    destroy(&c);
}
