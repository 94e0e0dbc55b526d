//! Kernels of every kind, run on fresh inputs and compared with plain Rust.

mod common;

use common::{Device, Params, floats, ints, random};
use uma_exec::KernelFault;

#[test]
fn grids_have_three_dimensions() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    let [nx, ny, nz] = [rng.usize(1..70), rng.usize(1..20), rng.usize(1..9)];
    let mut out = vec![-1i32; nx * ny * nz];
    let block = [16, 4, 2];
    let grid = [nx.div_ceil(16) as u32, ny.div_ceil(4) as u32, nz.div_ceil(2) as u32];
    let params = Params::new().out(&mut out).value(nx as i32).value(ny as i32).value(nz as i32);
    device.launch("coordinates", grid, block, params).unwrap();
    let offset = (grid[0] * 7 + grid[1] * 11 + grid[2] * 13) as i32;
    for (i, &value) in out.iter().enumerate() {
        let [x, y, z] = [i % nx, i / nx % ny, i / nx / ny];
        assert_eq!(value, (x + 1000 * y + 1_000_000 * z) as i32 + offset, "{x} {y} {z}");
    }
}

#[test]
fn guards_hold_at_every_length() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    for _ in 0..40 {
        let n = rng.usize(1..3000);
        let (a, x, mut y) = (rng.f32(), floats(&mut rng, n, -9.0, 9.0), floats(&mut rng, n + 64, -9.0, 9.0));
        let before = y.clone();
        let block = rng.u32(1..400);
        let params = Params::new().value(a).slice(&x).out(&mut y).value(n as i32);
        device.launch("saxpy", (n as u32).div_ceil(block), block, params).unwrap();
        for i in 0..n {
            let exact = a.mul_add(x[i], before[i]);
            assert!((y[i] - exact).abs() <= 1e-5, "{i} of {n}: {} is not {exact}", y[i]);
        }
        assert_eq!(y[n..], before[n..], "writes past the guard");
    }
}

#[test]
fn templates_and_device_functions() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    let n = 500;
    let x = ints(&mut rng, n, -50..50);
    let mut y = vec![0i32; n];
    device.launch("evaluateIi", 4u32, 128u32, Params::new().slice(&x).out(&mut y).value(n as i32)).unwrap();
    for i in 0..n {
        assert_eq!(y[i], 1 + x[i] * (2 + x[i] * (-3 + x[i] * 4)));
    }
    let x: Vec<f64> = x.iter().map(|&x| f64::from(x) / 7.0).collect();
    let mut y = vec![0f64; n];
    device.launch("evaluateId", 4u32, 128u32, Params::new().slice(&x).out(&mut y).value(n as i32)).unwrap();
    for i in 0..n {
        let exact = 1.0 + x[i] * (2.0 + x[i] * (-3.0 + x[i] * 4.0));
        assert!((y[i] - exact).abs() <= 1e-12 * exact.abs().max(1.0) * 100.0, "{} is not {exact}", y[i]);
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Weights {
    count: i32,
    w: [f32; 5],
}

#[test]
fn structures_by_value() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    let n = 300;
    let weights = Weights { count: 4, w: std::array::from_fn(|_| rng.i32(-8..8) as f32) };
    let x: Vec<f32> = ints(&mut rng, n, -99..99).iter().map(|&x| x as f32).collect();
    let mut y = vec![0f32; n];
    device
        .launch("weighted", 3u32, 128u32, Params::new().value(weights).slice(&x).out(&mut y).value(n as i32))
        .unwrap();
    for i in 0..n {
        let exact: f32 = (0..4).map(|k| weights.w[k] * x[(i + k) % n]).sum();
        assert_eq!(y[i], exact, "{i}");
    }
}

#[test]
fn each_thread_changes_its_own_copy() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    let n = 300;
    let weights = Weights { count: 0, w: std::array::from_fn(|_| rng.i32(1..8) as f32) };
    let at = ints(&mut rng, n, 0..1000);
    let mut y = vec![0f32; n];
    device
        .launch("changed", 3u32, 128u32, Params::new().value(weights).slice(&at).out(&mut y).value(n as i32))
        .unwrap();
    for i in 0..n {
        let mut w = weights.w;
        w[at[i] as usize % 5] = -1.0;
        assert_eq!(y[i], w[0] + 2.0 * w[1] + 4.0 * w[2] + 8.0 * w[3] + 16.0 * w[4], "{i}");
    }
}

#[test]
fn local_arrays_are_a_threads_own() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    let n = 200;
    let input = ints(&mut rng, 8 * n, -1000..1000);
    let mut out = vec![0i32; 8 * n];
    device.launch("sorted", 2u32, 128u32, Params::new().slice(&input).out(&mut out).value(n as i32)).unwrap();
    for (input, out) in input.chunks(8).zip(out.chunks(8)) {
        let mut exact = input.to_vec();
        exact.sort_unstable();
        assert_eq!(out, exact);
    }
}

#[test]
fn a_thread_reads_what_it_wrote() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    let n = 1000;
    let at = ints(&mut rng, n, -1000..1000);
    let mut p = vec![0i32; 2 * n];
    let q = p.as_ptr();
    device.launch("own_writes", 8u32, 128u32, Params::new().out(&mut p).value(q).slice(&at).value(n as i32)).unwrap();
    for i in 0..n {
        assert_eq!([p[2 * i], p[2 * i + 1]], [2 * (3 * at[i] + 1), 3 * at[i] + 1], "{i}");
    }
}

#[test]
fn a_thread_reads_pairs_that_it_wrote() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    let at = ints(&mut rng, 1024, -1000..1000);
    let (mut p, mut seen) = (vec![0i32; 2048], vec![0i32; 1024]);
    let q = p.as_ptr();
    device.launch("own_pairs", 1u32, 1024u32, Params::new().out(&mut p).value(q).slice(&at).out(&mut seen)).unwrap();
    for i in 0..1024 {
        assert_eq!([p[2 * i], p[2 * i + 1], seen[i]], [3 * at[i], 3 * at[i] + 1, 3 * at[i] + 1], "{i}");
    }
}

#[test]
fn function_pointers_recursion_and_virtual_functions() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    let n = 200;
    let input = ints(&mut rng, n, 0..100);
    let mut out = vec![0i32; n];
    device.launch("chosen", 2u32, 100u32, Params::new().slice(&input).out(&mut out).value(n as i32)).unwrap();
    for i in 0..n {
        let x = input[i];
        assert_eq!(out[i], [2 * x, x * x, -x][x as usize % 3] + i as i32 % 100, "{i}");
    }
    let mut numbers = [0u64; 20];
    device.launch("recursion", 1u32, 20u32, Params::new().out(&mut numbers)).unwrap();
    assert!(numbers[0] == 0 && numbers[1] == 1 && (2..20).all(|i| numbers[i] == numbers[i - 1] + numbers[i - 2]));
    let sides = floats(&mut rng, n, 0.0, 9.0);
    let mut areas = vec![0f32; n];
    device.launch("areas", 2u32, 100u32, Params::new().slice(&sides).out(&mut areas).value(n as i32)).unwrap();
    for i in 0..n {
        let exact = if i % 3 == 0 { 3.0 * sides[i] * sides[i] } else { sides[i] * sides[i] };
        assert!((areas[i] - exact).abs() <= 1e-5 * exact, "{i}");
    }
}

#[test]
fn virtual_functions_without_optimisation() {
    let (device, mut rng) = (Device::compile_with("grid.cu", &["-O0"]), random());
    let sides = floats(&mut rng, 50, 0.0, 9.0);
    let mut areas = vec![0f32; 50];
    device.launch("areas", 1u32, 64u32, Params::new().slice(&sides).out(&mut areas).value(50i32)).unwrap();
    for i in 0..50 {
        let exact = if i % 3 == 0 { 3.0 * sides[i] * sides[i] } else { sides[i] * sides[i] };
        assert!((areas[i] - exact).abs() <= 1e-5 * exact, "{i}");
    }
}

#[test]
fn strides_over_the_grid() {
    let (device, mut rng) = (Device::compile("grid.cu"), random());
    let n = rng.usize(1..5000);
    let x = floats(&mut rng, n, -9.0, 9.0);
    let mut y = vec![0f32; n];
    device.launch("strided", 3u32, 64u32, Params::new().out(&mut y).slice(&x).value(n as i32)).unwrap();
    assert!((0..n).all(|i| y[i] == x[i] * 0.5));
}

#[test]
fn static_and_dynamic_shared_memory() {
    let (device, mut rng) = (Device::compile("sharing.cu"), random());
    let input = ints(&mut rng, 256 * 7, i32::MIN..i32::MAX);
    let mut out = vec![0i32; input.len()];
    device.launch("reversed", 7u32, 256u32, Params::new().slice(&input).out(&mut out)).unwrap();
    for (input, out) in input.chunks(256).zip(out.chunks(256)) {
        assert!(input.iter().rev().eq(out));
    }
    let input: Vec<f64> = (0..32).map(|_| rng.f64()).collect();
    let mut out = vec![0f64; 32];
    device.launch_with("layout", 1u32, 32u32, 32 * 8, Params::new().slice(&input).out(&mut out)).unwrap();
    for t in 0..32 {
        assert_eq!(out[t], (t % 3 + 1) as f64 + input[(t + 1) % 32] + 2.0 * input[(t + 1) % 32], "{t}");
    }
    let info = device.kernel("layout").info().clone();
    assert!(info.static_shared >= 3 + 256 && info.static_shared % 16 == 0, "{info:?}");
}

#[test]
fn a_shared_variable_of_a_device_function_serves_two_kernels() {
    let (device, mut rng) = (Device::compile("sharing.cu"), random());
    let input: Vec<f32> = ints(&mut rng, 5 * 256, -9..9).iter().map(|&x| x as f32).collect();
    let mut out = [0f32; 5];
    device.launch("sums", 5u32, 256u32, Params::new().slice(&input).out(&mut out)).unwrap();
    for (input, out) in input.chunks(256).zip(out) {
        assert_eq!(out, input.iter().sum::<f32>());
    }
    device.launch("squares", 5u32, 256u32, Params::new().slice(&input).out(&mut out)).unwrap();
    for (input, out) in input.chunks(256).zip(out) {
        assert_eq!(out, input.iter().map(|x| x * x).sum::<f32>());
    }
}

#[test]
fn threads_that_have_left_count_as_arrived() {
    let device = Device::compile("sharing.cu");
    let mut out = [-1i32; 70];
    device.launch("leaving", 1u32, 70u32, Params::new().out(&mut out)).unwrap();
    assert!(out.iter().copied().eq(0..70));
}

#[test]
fn barriers_that_count() {
    let (device, mut rng) = (Device::compile("sharing.cu"), random());
    let mut input = ints(&mut rng, 4 * 96, -1..2);
    input[..96].fill(1);
    input[96..192].fill(0);
    let mut out = [0i32; 12];
    device.launch("votes", 4u32, 96u32, Params::new().slice(&input).out(&mut out)).unwrap();
    for (input, out) in input.chunks(96).zip(out.chunks(3)) {
        let count = input.iter().filter(|&&p| p > 0).count() as i32;
        assert_eq!(out, [count, i32::from(count == 96), i32::from(count > 0)]);
    }
}

#[test]
fn constant_memory_and_device_variables() {
    let (mut device, mut rng) = (Device::compile("sharing.cu"), random());
    let n = 1000;
    let input: Vec<f32> = ints(&mut rng, n, -99..99).iter().map(|&x| x as f32).collect();
    let mut out = vec![0f32; n];
    let params = || Params::new().slice(&input);
    device.launch("globals", 8u32, 128u32, params().out(&mut out).value(n as i32)).unwrap();
    for i in 0..n {
        if i % 100 != 99 {
            assert_eq!(out[i], (0.5 + (i % 4) as f32) * input[i], "{i}");
        }
    }
    assert_eq!(device.global("counter")[..4], 1040i32.to_le_bytes());
    assert_eq!(device.global("zeroed")[99 * 4..400], 7f32.to_le_bytes());
    // What the host writes to constant memory, kernels see.
    device.global("coefficients")[..4].copy_from_slice(&100f32.to_le_bytes());
    device.launch("globals", 8u32, 128u32, params().out(&mut out).value(n as i32)).unwrap();
    assert_eq!(out[4], 100.0 * input[4]);
    let mut hidden = [0i32];
    device.launch("hidden", 1u32, 1u32, Params::new().out(&mut hidden)).unwrap();
    assert_eq!(hidden, [4000]);
    let mut letters = [0u8; 6];
    device.launch("named", 1u32, 6u32, Params::new().out(&mut letters)).unwrap();
    assert_eq!(&letters, b"eovded");
    assert!(device.module.metadata().globals.iter().any(|global| global.name.contains("never_used")));
}

#[test]
fn a_tiled_matrix_product() {
    let (device, mut rng) = (Device::compile("sharing.cu"), random());
    let n = 48usize;
    let [a, b] = [0, 1].map(|_| ints(&mut rng, n * n, -9..9).iter().map(|&x| x as f32).collect::<Vec<_>>());
    let mut c = vec![0f32; n * n];
    let params = Params::new().slice(&a).slice(&b).out(&mut c).value(n as i32);
    device.launch("matrix_product", [3, 3, 1], [16, 16, 1], params).unwrap();
    for y in 0..n {
        for x in 0..n {
            assert_eq!(c[y * n + x], (0..n).map(|k| a[y * n + k] * b[k * n + x]).sum::<f32>());
        }
    }
}

#[test]
fn shared_pointers_are_known_as_such() {
    let device = Device::compile("sharing.cu");
    let (mut out, mut global) = ([-1i32; 3], [0i32]);
    device.launch("is_shared", 1u32, 1u32, Params::new().out(&mut out).out(&mut global)).unwrap();
    assert_eq!(out, [1, 0, 0]);
}

#[test]
fn integer_atomics() {
    let (device, mut rng) = (Device::compile("atomics.cu"), random());
    let n = 5000;
    let input = ints(&mut rng, n, i32::MIN..i32::MAX);
    let mut r = [0, 0, i32::MAX, i32::MIN, -1, 0, 0, -1, 0, 0, 0, 0, 77];
    let params = Params::new().slice(&input).out(&mut r).value(n as i32);
    device.launch("integers", (n as u32).div_ceil(128), 128u32, params).unwrap();
    let sum = input.iter().fold(0i32, |a, &b| a.wrapping_add(b));
    let unsigned = || input.iter().map(|&x| x as u32);
    assert_eq!([r[0], r[1]], [sum, sum.wrapping_neg()]);
    assert_eq!([Some(&r[2]), Some(&r[3])], [input.iter().min(), input.iter().max()]);
    assert_eq!(r[4], input.iter().fold(-1, |a, b| a & b));
    assert_eq!(r[5], input.iter().fold(0, |a, b| a | b));
    assert_eq!(r[6], input.iter().fold(0, |a, b| a ^ b));
    assert_eq!([r[7] as u32, r[8] as u32], [unsigned().min().unwrap(), unsigned().max().unwrap()]);
    // Up to 6 and then 0; down from 0 to 9 and so on.
    assert_eq!([r[9], r[10]], [n as i32 % 7, (10 - n as i32 % 10) % 10]);
    // What is exchanged away, and what is left, is everything that was put in.
    assert_eq!(r[11].wrapping_add(r[12]), sum.wrapping_add(77));
}

#[test]
fn wide_atomics() {
    let (device, mut rng) = (Device::compile("atomics.cu"), random());
    let n = 3000;
    let input: Vec<i64> = (0..n).map(|_| rng.i64(..)).collect();
    let mut r = [0u64, i64::MAX as u64, i64::MIN as u64, u64::MAX, 0, 0, 0, 5];
    let params = Params::new().slice(&input).out(&mut r).value(n);
    device.launch("longs", (n as u32).div_ceil(128), 128u32, params).unwrap();
    let sum = input.iter().fold(0i64, |a, &b| a.wrapping_add(b)) as u64;
    assert_eq!(r[0], sum);
    assert_eq!([r[1] as i64, r[2] as i64], [*input.iter().min().unwrap(), *input.iter().max().unwrap()]);
    assert_eq!(r[3] as i64, input.iter().fold(-1, |a, b| a & b));
    assert_eq!(r[4] as i64, input.iter().fold(0, |a, b| a | b));
    assert_eq!(r[5] as i64, input.iter().fold(0, |a, b| a ^ b));
    assert_eq!(r[6].wrapping_add(r[7]), sum.wrapping_add(5));
}

#[test]
fn floating_point_atomics_and_compare_and_swap() {
    let (device, mut rng) = (Device::compile("atomics.cu"), random());
    let n = 4000;
    // Whole numbers, so that the order of the additions does not matter.
    let input: Vec<f32> = ints(&mut rng, n, -100..100).iter().map(|&x| x as f32).collect();
    let (mut f, mut d) = ([0f32], [0f64]);
    let params = Params::new().slice(&input).out(&mut f).out(&mut d).value(n as i32);
    device.launch("reals", 40u32, 100u32, params).unwrap();
    let sum: f32 = input.iter().sum();
    assert_eq!((f[0], d[0]), (sum, f64::from(sum)));
    let factors: Vec<u32> = (0..n).map(|_| rng.u32(..) | 1).collect();
    let (mut r, mut s) = ([1u32], [1u64]);
    let params = Params::new().slice(&factors).out(&mut r).out(&mut s).value(n as i32);
    device.launch("swaps", 40u32, 100u32, params).unwrap();
    assert_eq!(r[0], factors.iter().fold(1, |a: u32, &b| a.wrapping_mul(b)));
    assert_eq!(s[0], factors.iter().fold(1, |a: u64, &b| a.wrapping_mul(b.into())));
}

#[test]
fn a_histogram_in_shared_memory() {
    let (device, mut rng) = (Device::compile("atomics.cu"), random());
    let input: Vec<u8> = (0..100_000).map(|_| rng.u8(..).min(rng.u8(..))).collect();
    let mut bins = [0u32; 256];
    let params = Params::new().slice(&input).out(&mut bins).value(input.len() as i32);
    device.launch("histogram", 20u32, 192u32, params).unwrap();
    let mut exact = [0u32; 256];
    input.iter().for_each(|&x| exact[usize::from(x)] += 1);
    assert_eq!(bins, exact);
}

#[test]
fn the_last_block_sees_what_the_others_wrote() {
    let (device, mut rng) = (Device::compile("atomics.cu"), random());
    for _ in 0..50 {
        let input = ints(&mut rng, 300, -1000..1000);
        let (mut part, mut done, mut total) = (vec![0i32; 300], [0u32], [0i32]);
        let params = Params::new().slice(&input).out(&mut part).out(&mut done).out(&mut total);
        device.launch("last_block", 300u32, 4u32, params).unwrap();
        assert_eq!((total[0], done[0]), (input.iter().sum(), 0));
    }
}

#[test]
fn shuffles() {
    let (device, mut rng) = (Device::compile("warps.cu"), random());
    for width in [32usize, 16, 8, 4] {
        let delta = rng.usize(0..width);
        let input = ints(&mut rng, 64, i32::MIN..i32::MAX);
        let mut out = vec![0i32; 4 * 64];
        let params = Params::new().slice(&input).out(&mut out).value(delta as i32).value(width as i32);
        device.launch("shuffles", 1u32, 64u32, params).unwrap();
        for t in 0..64 {
            let (segment, lane) = (t / width * width, t % width);
            let source = |ok: bool, lane: usize| if ok { input[segment + lane] } else { input[t] };
            let exact = [
                source(lane >= delta, lane.wrapping_sub(delta)),
                source(lane + delta < width, lane + delta),
                source((lane ^ delta) < width, lane ^ delta),
                input[segment + delta],
            ];
            assert_eq!([0, 1, 2, 3].map(|kind| out[64 * kind + t]), exact, "lane {t}, delta {delta}, width {width}");
        }
    }
}

#[test]
fn shuffles_of_other_types() {
    let (device, mut rng) = (Device::compile("warps.cu"), random());
    let (input, f_input) = ((0..32).map(|_| rng.f64()).collect::<Vec<_>>(), floats(&mut rng, 32, 0.0, 1.0));
    let (mut out, mut f_out) = ([0f64; 32], [0f32; 32]);
    let params = Params::new().slice(&input).out(&mut out).slice(&f_input).out(&mut f_out);
    device.launch("wide_shuffles", 1u32, 32u32, params).unwrap();
    for t in 0..32 {
        assert_eq!(out[t], input[t ^ 5]);
        assert_eq!(f_out[t], f_input[if t + 3 < 32 { t + 3 } else { t }]);
    }
    let input: Vec<f32> = ints(&mut rng, 5 * 128, -99..99).iter().map(|&x| x as f32).collect();
    let mut out = [0f32; 20];
    device.launch("warp_sums", 5u32, 128u32, Params::new().slice(&input).out(&mut out)).unwrap();
    for (input, out) in input.chunks(32).zip(out) {
        assert_eq!(out, input.iter().sum::<f32>());
    }
}

#[test]
fn votes_of_a_warp() {
    let (device, mut rng) = (Device::compile("warps.cu"), random());
    let mut input = ints(&mut rng, 128, -5..5);
    input[32..64].fill(1);
    input[64..96].fill(0);
    let mut out = vec![0u32; 4 * 128];
    device.launch("ballots", 1u32, 128u32, Params::new().slice(&input).out(&mut out)).unwrap();
    for t in 0..128 {
        let warp = &input[t / 32 * 32..][..32];
        let ballot = warp.iter().enumerate().fold(0u32, |mask, (lane, &p)| mask | u32::from(p > 0) << lane);
        let exact = [
            ballot,
            u32::from(ballot == u32::MAX),
            u32::from(ballot != 0),
            u32::from(ballot == u32::MAX || ballot == 0),
        ];
        assert_eq!(
            [0, 1, 2, 3].map(|kind| u32::from(out[128 * kind + t] != 0) * if kind == 0 { out[t] } else { 1 }),
            exact,
            "{t}"
        );
    }
}

#[test]
fn parts_of_a_warp() {
    let (device, mut rng) = (Device::compile("warps.cu"), random());
    let input = ints(&mut rng, 32, -99..99);
    let mut out = [0i32; 32];
    device.launch("halves", 1u32, 32u32, Params::new().slice(&input).out(&mut out)).unwrap();
    let even = (0..32).step_by(2).fold(0, |mask, lane| mask | i32::from(input[lane] > 0) << lane);
    for t in 0..32 {
        assert_eq!(out[t], if t % 2 == 1 { input[t ^ 2] } else { input[t ^ 4].wrapping_add(even) }, "{t}");
    }
    let mut out = [0i32; 10];
    device.launch("gone", 1u32, 32u32, Params::new().out(&mut out)).unwrap();
    assert_eq!(out, [0x3ff; 10]);
    let mut out = [0u32; 40];
    device.launch("active", 1u32, 40u32, Params::new().out(&mut out)).unwrap();
    for t in 0..40u32 {
        let warp = t / 32 * 32..40.min(t / 32 * 32 + 32);
        let exact =
            warp.filter(|other| (other % 3 == 0) == (t % 3 == 0)).fold(0, |mask, other| mask | 1 << (other % 32));
        assert_eq!(out[t as usize], exact, "{t}");
    }
    let mut out = [0i32; 32];
    device.launch("meets", 1u32, 32u32, Params::new().out(&mut out)).unwrap();
    assert_eq!(out, [(0..32).map(|k| k * k).sum::<i32>(); 32]);
}

#[test]
fn cooperative_groups_up_to_a_warp() {
    let (device, mut rng) = (Device::compile("groups.cu"), random());
    let input = ints(&mut rng, 64, -99..99);
    let mut out = [0i32; 64];
    device.launch("tiles", 1u32, 64u32, Params::new().slice(&input).out(&mut out)).unwrap();
    for t in 0..64 {
        let reversed = |lane: usize| input[63 - (t / 8 * 8 + lane)];
        let sum: i32 = (0..8).map(reversed).sum();
        assert_eq!(out[t], if t % 8 == 0 { sum } else { t as i32 % 8 }, "{t}");
    }
    let mut sizes = [0i32; 64];
    device.launch("coalesced", 1u32, 64u32, Params::new().slice(&input).out(&mut sizes)).unwrap();
    for t in 0..64 {
        let warp = t / 32 * 32..t / 32 * 32 + 32;
        let (before, all) = (warp.start..t, warp);
        let exact = 100 * all.filter(|&o| input[o] > 0).count() + before.filter(|&o| input[o] > 0).count();
        assert_eq!(sizes[t], if input[t] > 0 { exact as i32 } else { -1 }, "{t}");
    }
}

#[test]
fn matches_and_reductions_of_a_warp() {
    let (device, mut rng) = (Device::compile("warps.cu"), random());
    let input = ints(&mut rng, 32, -3..3);
    let wide: Vec<i64> = input.iter().map(|&x| i64::from(x % 2) << 32 | 7).collect();
    let (mut out, mut wide_out) = ([0u32; 32], [0u32; 32]);
    let params = Params::new().slice(&input).out(&mut out).slice(&wide).out(&mut wide_out);
    device.launch("matches", 1u32, 32u32, params).unwrap();
    for t in 0..32 {
        let same = |equal: &dyn Fn(usize) -> bool| (0..32).fold(0u32, |mask, o| mask | u32::from(equal(o)) << o);
        assert_eq!(out[t], same(&|o| input[o] == input[t]));
        assert_eq!(wide_out[t], same(&|o| wide[o] == wide[t]));
    }
    let input = ints(&mut rng, 32, i32::MIN..i32::MAX);
    let mut out = [0i32; 256];
    device.launch("reductions", 1u32, 32u32, Params::new().slice(&input).out(&mut out)).unwrap();
    let unsigned = || input.iter().map(|&x| x as u32);
    let exact = [
        input.iter().fold(0i32, |a, &b| a.wrapping_add(b)),
        *input.iter().min().unwrap(),
        *input.iter().max().unwrap(),
        input.iter().fold(-1, |a, b| a & b),
        input.iter().fold(0, |a, b| a | b),
        input.iter().fold(0, |a, b| a ^ b),
        unsigned().min().unwrap() as i32,
        unsigned().max().unwrap() as i32,
    ];
    assert!(out.chunks(8).all(|found| found == exact), "{out:?} {exact:?}");
}

#[test]
fn a_deadlock_is_a_fault_and_not_a_hang() {
    let device = Device::compile("warps.cu");
    let fault = device.launch("stuck", 1u32, 32u32, Params::new()).unwrap_err();
    let KernelFault::Deadlock { waits, .. } = &fault else { panic!("{fault:?}") };
    assert_eq!(waits, "1 threads wait at __syncthreads, 31 threads wait at a shuffle");
    let fault = device.launch("wrong_mask", 1u32, 1u32, Params::new()).unwrap_err();
    assert!(matches!(fault, KernelFault::LaneNotInMask { mask: 2, .. }), "{fault:?}");
    // The pool goes on.
    let mut out = [0i32; 32];
    device.launch("meets", 1u32, 32u32, Params::new().out(&mut out)).unwrap();
    assert_eq!(out[0], 10416);
}

#[test]
fn kernels_print() {
    let (device, mut rng) = (Device::compile("services.cu"), random());
    let (a, b, c) = (rng.i32(-999..999), f64::from(rng.i32(-999..999)) / 8.0, rng.u64(..));
    let params = Params::new().value(a).value(b).value(c).value(0u64);
    device.launch("prints", 2u32, 3u32, params).unwrap();
    let line = |block: u32| format!("block {block}: {a:5}|{b:<6.2}|{c:x}|text|z%\nno arguments\n");
    assert_eq!(device.printed(), line(0) + &line(1));
}

#[test]
fn asserts_and_traps_are_faults() {
    let device = Device::compile("services.cu");
    let input = [1, 2, 30, 4];
    let fault = device.launch("asserts", 4u32, 1u32, Params::new().slice(&input)).unwrap_err();
    let KernelFault::Assert { message, place, .. } = &fault else { panic!("{fault:?}") };
    assert!(message.contains("services.cu:9: ") && message.contains("in[blockIdx.x] < 10"), "{message}");
    assert_eq!(place.block, [2, 0, 0]);
    device.launch("asserts", 2u32, 1u32, Params::new().slice(&input)).unwrap();
    let fault = device.launch("traps", 3u32, 64u32, Params::new().value(33i32)).unwrap_err();
    let KernelFault::Trap { place, .. } = &fault else { panic!("{fault:?}") };
    assert_eq!(place.thread, Some([33, 0, 0]));
    device.launch("traps", 3u32, 64u32, Params::new().value(64i32)).unwrap();
}

#[test]
fn clocks_run() {
    let device = Device::compile("services.cu");
    let mut out = [-1i64; 4];
    device.launch("times", 1u32, 4u32, Params::new().out(&mut out)).unwrap();
    assert!(out.iter().all(|&t| (0..1_000_000_000).contains(&t)), "{out:?}");
}

#[test]
fn launches_out_of_bounds_are_refused() {
    let device = Device::compile("services.cu");
    let mut out = [0i32; 65];
    let problem = |grid: [u32; 3], block: [u32; 3], shared, out: &mut [i32]| match device.launch_with(
        "bounded",
        grid,
        block,
        shared,
        Params::new().out(out),
    ) {
        Err(KernelFault::Configuration { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    assert!(problem([1, 1, 1], [65, 1, 1], 0, &mut out).contains("65 threads, more than 64"));
    assert!(problem([0, 1, 1], [1, 1, 1], 0, &mut out).starts_with("grid"));
    assert!(problem([1, 1, 1], [1, 1, 65], 0, &mut out).starts_with("block"));
    assert!(problem([1, 1, 1], [1, 1, 1], 1 << 20, &mut out).contains("shared memory"));
    assert_eq!(out, [0; 65]);
    device.launch("bounded", 1u32, 64u32, Params::new().out(&mut out)).unwrap();
    assert_eq!(out[63..], [1, 0]);
}

#[test]
fn without_optimisation_the_results_are_the_same() {
    let (device, mut rng) = (Device::compile_with("sharing.cu", &["-O0", "-g"]), random());
    let input = ints(&mut rng, 256 * 3, i32::MIN..i32::MAX);
    let mut out = vec![0i32; input.len()];
    device.launch("reversed", 3u32, 256u32, Params::new().slice(&input).out(&mut out)).unwrap();
    for (input, out) in input.chunks(256).zip(out.chunks(256)) {
        assert!(input.iter().rev().eq(out));
    }
}
