//! Gives the library the name of NVIDIA's driver library, so that what asks for that one loads ours.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    // What cuGetProcAddress gives are our functions, also when another library of the program has some of the same name.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
