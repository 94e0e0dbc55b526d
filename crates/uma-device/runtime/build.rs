//! Gives the library the name and the symbol version of CUDA 13's runtime, so that a program linked against NVIDIA's loads ours.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcudart.so.13");
    // It opens libcuda.so.1, which lies beside it unless LD_LIBRARY_PATH says otherwise.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
    // Every exported symbol gets the version `libcudart.so.13`. Only GNU ld knows --default-symver, and rustc's own list of exports rules
    // out a version script.
    println!("cargo:rustc-cdylib-link-arg=-fuse-ld=bfd");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--default-symver");
}
