//! Speed, to be looked at: `cargo test --release -p uma-compiler --test speed -- --ignored --nocapture --test-threads=1`.

mod common;

use common::{Device, Params};
use std::process::Command;
use std::time::{Duration, Instant};

const N: usize = 16 << 20;

/// The least time on the clock and the least time on all CPUs of several runs.
fn best(mut run: impl FnMut()) -> [Duration; 2] {
    let mut best = [Duration::MAX; 2];
    for _ in 0..15 {
        let (start, cpu) = (Instant::now(), cpu_time());
        run();
        best = [best[0].min(start.elapsed()), best[1].min(cpu_time() - cpu)];
    }
    best
}

/// Time that all threads of this process have run.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn median(runs: usize, mut run: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[runs / 2]
}

#[test]
#[ignore = "measures"]
fn saxpy_against_two_threads_of_clang() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("saxpy.c"), folder.path().join("saxpy.so"));
    let text = "void saxpy(float a, const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = a * x[i] + y[i]; }";
    std::fs::write(&source, text).unwrap();
    let status = Command::new("clang-22")
        .args(["-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC"])
        .arg(&source)
        .arg("-o")
        .arg(&library)
        .status();
    assert!(status.unwrap().success());
    // SAFETY: the library was just compiled from the text above.
    let library = unsafe { libloading::Library::new(&library) }.unwrap();
    type Saxpy = unsafe extern "C" fn(f32, *const f32, *mut f32, i64);
    // SAFETY: its only function.
    let saxpy = unsafe { *library.get::<Saxpy>(b"saxpy").unwrap() };
    let (x, mut y) = (vec![1.5f32; N], vec![0.25f32; N]);
    let plain = best(|| {
        std::thread::scope(|scope| {
            for (x, y) in x.chunks(N / 2).zip(y.chunks_mut(N / 2)) {
                // SAFETY: the halves do not overlap.
                scope.spawn(move || unsafe { saxpy(0.5, x.as_ptr(), y.as_mut_ptr(), x.len() as i64) });
            }
        });
    });
    let device = Device::compile("grid.cu");
    let params = || Params::new().value(0.5f32);
    let kernel = best(|| {
        let params = params().slice(&x).out(&mut y).value(N as i32);
        device.launch("saxpy", (N / 256) as u32, 256u32, params).unwrap();
    });
    let ratio = |i: usize| kernel[i].as_secs_f64() / plain[i].as_secs_f64();
    println!(
        "saxpy over 64 MiB: clang, two threads {plain:?}; kernel {kernel:?}; ratio {:.2}, CPU {:.2}",
        ratio(0),
        ratio(1)
    );
}

#[test]
#[ignore = "measures"]
fn an_empty_launch() {
    let device = Device::compile("grid.cu");
    let time = median(10_000, || device.launch("empty", 1u32, 32u32, Params::new()).unwrap());
    println!("empty launch: {time:?}");
}

#[test]
#[ignore = "measures"]
fn barriers_and_shuffles() {
    let device = Device::compile("sharing.cu");
    let input = vec![1f32; 1 << 20];
    let mut out = vec![0f32; 1 << 12];
    let time = best(|| device.launch("sums", 1u32 << 12, 256u32, Params::new().slice(&input).out(&mut out)).unwrap());
    println!("block sums over 1 Mi floats (9 barriers a thread): {time:?}");
    let [a, b] = [1f32, 2.0].map(|x| vec![x; 512 * 512]);
    let mut c = vec![0f32; 512 * 512];
    let time = best(|| {
        let params = Params::new().slice(&a).slice(&b).out(&mut c).value(512i32);
        device.launch("matrix_product", [32, 32, 1], [16, 16, 1], params).unwrap();
    });
    println!("tiled matrix product, n = 512: {time:?}");
    let device = Device::compile("warps.cu");
    let time = best(|| {
        device
            .launch("warp_sums", 1u32 << 12, 256u32, Params::new().slice(&input).out(&mut vec![0f32; 1 << 15]))
            .unwrap()
    });
    println!("warp sums over 1 Mi floats (5 shuffles a thread): {time:?}");
}
