//! Images that are registered by hand: managed variables, reset, images of other devices.

mod support;
use std::process::Command;
use support::{Bench, cuda};

/// An image with a kernel `bump(int by)` that adds to the managed variable `counter`, first 41.
fn image(bench: &Bench) -> std::path::PathBuf {
    let metadata = r#"{"kernels":[{"name":"bump","symbol":"bump","params":[{"size":4,"align":4}],"static_shared":0,"mode":"Block","max_threads":1024}],
        "globals":[{"name":"counter","size":4,"align":4,"managed":true,"pointer_symbol":"counter_at","init_symbol":"counter_is"}]}"#;
    let source = format!(
        "__attribute__((section(\"{}\"), used)) const char metadata[{}] = {:?};\n\
         const int counter_is = 41; int *counter_at;\n\
         void bump(void **args, void *context) {{ *counter_at += *(int *)args[0]; }}\n",
        uma_abi::METADATA_SECTION,
        metadata.len(),
        metadata
    );
    let (c, library, image) =
        (bench.path().join("image.c"), bench.path().join("image.so"), bench.path().join("image.uma"));
    std::fs::write(&c, source).unwrap();
    let built = Command::new("clang-22").args(["-O1", "-shared", "-fPIC"]).arg(&c).arg("-o").arg(&library).status();
    assert!(built.expect("clang-22 runs").success());
    let elf = std::fs::read(library).unwrap();
    let bytes = [&uma_abi::IMAGE_MAGIC[..], &(elf.len() as u64).to_le_bytes(), &elf].concat();
    std::fs::write(&image, bytes).unwrap();
    image
}

#[test]
fn images_registered_by_hand() {
    let bench = Bench::empty();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/registration.cpp");
    let mut command = Command::new("clang++-22");
    command.arg("-I").arg(cuda().join("include")).arg(source).arg("-o").arg(bench.path().join("registration"));
    command.arg("-L").arg(bench.path()).arg("-lcudart");
    assert!(command.status().expect("clang++-22 runs").success());
    let image = image(&bench);
    let output = bench.output("registration", &[image.to_str().unwrap()], &[]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(text, "done\n", "{errors}");
    assert_eq!(errors.matches("uma-device: the program's kernels can't run here").count(), 1, "{errors}");
}
