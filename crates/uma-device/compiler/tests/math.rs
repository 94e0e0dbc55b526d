//! Mathematical device functions against the C library, rounding modes against exact arithmetic, conversions and bit operations against
//! their definitions.

mod common;

use common::{Device, Params, floats, random};

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn tgamma(x: f64) -> f64;
}

fn sin_pi(x: f64) -> f64 {
    // The inputs are multiples of 1/64, so the reduction is exact.
    let r = x.rem_euclid(2.0);
    let sign = if r >= 1.0 { -1.0 } else { 1.0 };
    let r = r % 1.0;
    sign * if r > 0.5 { (std::f64::consts::PI * (1.0 - r)).sin() } else { (std::f64::consts::PI * r).sin() }
}

#[test]
fn functions_of_one_argument() {
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function, [f64; 2]); 30] = [
        ("sin", f64::sin, [-20.0, 20.0]),
        ("cos", f64::cos, [-20.0, 20.0]),
        ("tan", f64::tan, [-1.5, 1.5]),
        ("asin", f64::asin, [-1.0, 1.0]),
        ("acos", f64::acos, [-1.0, 1.0]),
        ("atan", f64::atan, [-20.0, 20.0]),
        ("sinh", f64::sinh, [-5.0, 5.0]),
        ("cosh", f64::cosh, [-5.0, 5.0]),
        ("tanh", f64::tanh, [-5.0, 5.0]),
        ("exp", f64::exp, [-20.0, 20.0]),
        ("exp2", f64::exp2, [-20.0, 20.0]),
        ("expm1", f64::exp_m1, [-2.0, 2.0]),
        ("log", f64::ln, [0.0, 99.0]),
        ("log2", f64::log2, [0.0, 99.0]),
        ("log10", f64::log10, [0.0, 99.0]),
        ("log1p", f64::ln_1p, [-0.9, 9.0]),
        ("sqrt", f64::sqrt, [0.0, 99.0]),
        ("cbrt", f64::cbrt, [-99.0, 99.0]),
        ("rsqrt", |x| 1.0 / x.sqrt(), [0.1, 99.0]),
        ("floor", f64::floor, [-99.0, 99.0]),
        ("ceil", f64::ceil, [-99.0, 99.0]),
        ("trunc", f64::trunc, [-99.0, 99.0]),
        ("rint", f64::round_ties_even, [-99.0, 99.0]),
        ("round", f64::round, [-99.0, 99.0]),
        ("fabs", f64::abs, [-99.0, 99.0]),
        ("sinpi", sin_pi, [-99.0, 99.0]),
        ("cospi", |x| sin_pi(x + 0.5), [-99.0, 99.0]),
        ("erf", |x| erf(x), [-3.0, 3.0]),
        ("normcdf", |x| 0.5 * erfc(-x / std::f64::consts::SQRT_2), [-5.0, 5.0]),
        ("tgamma", |x| tgamma(x), [0.5, 9.0]),
    ];
    let (device, mut rng) = (Device::compile("math.cu"), random());
    let n = 256;
    for (name, function, [low, high]) in functions {
        // Multiples of 1/64 are exact in both precisions.
        let single: Vec<f32> =
            floats(&mut rng, n, low as f32, high as f32).iter().map(|x| (x * 64.0).ceil() / 64.0).collect();
        let double: Vec<f64> = single.iter().map(|&x| x.into()).collect();
        let (mut s, mut d) = (vec![0f32; n], vec![0f64; n]);
        device
            .launch(&format!("d_{name}"), 4u32, 64u32, Params::new().slice(&double).out(&mut d).value(n as i32))
            .unwrap();
        device
            .launch(&format!("s_{name}"), 4u32, 64u32, Params::new().slice(&single).out(&mut s).value(n as i32))
            .unwrap();
        for i in 0..n {
            let exact = function(double[i]);
            let near =
                |found: f64, bound: f64| found == exact || (found - exact).abs() <= bound * exact.abs().max(1e-3);
            assert!(near(d[i], 1e-13), "{name}({}) = {} is not {exact}", double[i], d[i]);
            assert!(near(s[i].into(), 1e-5), "{name}f({}) = {} is not {exact}", double[i], s[i]);
        }
    }
}

#[test]
fn functions_of_two_arguments() {
    let (device, mut rng) = (Device::compile("math.cu"), random());
    let n = 300;
    let [a, b] = [0, 1].map(|_| (0..n).map(|_| rng.f64() * 20.0 - 10.0).collect::<Vec<f64>>());
    let mut y = vec![0f64; 12 * n];
    device.launch("two", 5u32, 64u32, Params::new().slice(&a).slice(&b).out(&mut y).value(n as i32)).unwrap();
    for (i, found) in y.chunks(12).enumerate() {
        let (a, b) = (a[i], b[i]);
        let exponent = a.abs().log2().floor() + 1.0;
        let exact = [
            a.abs().powf(b),
            a.atan2(b),
            a % b,
            a.hypot(b),
            a.max(b),
            a.min(b),
            a.copysign(b),
            a.mul_add(b, 1.0),
            a.sin(),
            a.cos(),
            a / exponent.exp2(),
            exponent,
        ];
        for (found, exact) in found.iter().zip(exact) {
            assert!((found - exact).abs() <= 1e-13 * exact.abs().max(1e-3), "{found} is not {exact} for {a} and {b}");
        }
    }
}

#[test]
fn fast_functions_are_near() {
    let (device, mut rng) = (Device::compile("math.cu"), random());
    let a = floats(&mut rng, 200, 0.01, 3.0);
    let mut y = vec![0f32; 8 * 200];
    device.launch("fast", 4u32, 64u32, Params::new().slice(&a).out(&mut y).value(200i32)).unwrap();
    for (a, found) in a.iter().zip(y.chunks(8)) {
        let exact = [a.sin(), a.cos(), a.exp(), a.ln(), a / 3.0, a.clamp(0.0, 1.0), a.powf(1.5), 1.0 / a];
        assert!(found.iter().zip(exact).all(|(f, e)| (f - e).abs() <= 2e-6 * e.abs().max(1.0)), "{found:?} {exact:?}");
    }
}

/// Each operation's four roundings: to nearest, down, up, to zero.
fn check_roundings(
    found: [f64; 4],
    is_below: impl Fn(f64) -> bool,
    is_above: impl Fn(f64) -> bool,
    next_up: impl Fn(f64) -> f64,
) {
    let [nearest, down, up, zero] = found;
    assert!(is_below(down), "{found:?}: rounded down, yet above");
    assert!(is_above(up), "{found:?}: rounded up, yet below");
    assert!(up == down || up == next_up(down), "{found:?}: not neighbours");
    assert!(nearest == down || nearest == up, "{found:?}");
    assert_eq!(zero, if down >= 0.0 { down } else { up }, "{found:?}");
}

#[test]
fn rounding_modes_are_exact() {
    let (device, mut rng) = (Device::compile("math.cu"), random());
    let n = 400;
    let (a, b) = (floats(&mut rng, n, -64.0, 64.0), floats(&mut rng, n, 0.5, 64.0));
    let d: Vec<f64> = (0..n).map(|_| rng.f64() * 128.0 - 64.0).collect();
    let (mut y, mut z) = (vec![0f32; 16 * n], vec![0f64; 8 * n]);
    let params = Params::new().slice(&a).slice(&b).out(&mut y).slice(&d).out(&mut z).value(n as i32);
    device.launch("rounded", 7u32, 64u32, params).unwrap();
    let next_single = |x: f64| f64::from((x as f32).next_up());
    let mut inexact = 0;
    for i in 0..n {
        let (a, b, d) = (f64::from(a[i]), f64::from(b[i]), d[i]);
        let single = |k: usize| std::array::from_fn(|mode| f64::from(y[16 * i + 4 * k + mode]));
        let double = |k: usize| std::array::from_fn::<f64, 4, _>(|mode| z[8 * i + 4 * k + mode]);
        // Sums and products of two floats of like size are exact in double.
        check_roundings(single(0), |x| x <= a + b, |x| x >= a + b, next_single);
        check_roundings(single(1), |x| x <= a * b, |x| x >= a * b, next_single);
        check_roundings(single(2), |x| x * b <= a, |x| x * b >= a, next_single);
        check_roundings(single(3), |x| x <= d, |x| x >= d, next_single);
        // What a rounded sum lost, exactly (Knuth).
        let lost = |x: f64| {
            let part = x - d;
            (d - (x - part)) + (a - part)
        };
        let sum = d + a;
        check_roundings(
            double(0),
            |x| x < sum || (x == sum && lost(sum) >= 0.0),
            |x| x > sum || (x == sum && lost(sum) <= 0.0),
            f64::next_up,
        );
        let square = d.abs();
        check_roundings(double(1), |x| x.mul_add(x, -square) <= 0.0, |x| x.mul_add(x, -square) >= 0.0, f64::next_up);
        inexact += usize::from(single(2)[1] != single(2)[2]);
    }
    assert!(inexact > n / 2, "the modes make no difference");
}

#[test]
fn conversions_saturate_as_on_a_gpu() {
    let (device, mut rng) = (Device::compile("math.cu"), random());
    let mut a = floats(&mut rng, 100, -1e4, 1e4);
    a.extend([
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        3e9,
        -3e9,
        5e9,
        1e19,
        2e19,
        -1e19,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -0.0,
    ]);
    let n = a.len();
    let (mut y, mut z) = (vec![0i32; 8 * n], vec![0i64; 4 * n]);
    device.launch("converted", 2u32, 64u32, Params::new().slice(&a).out(&mut y).out(&mut z).value(n as i32)).unwrap();
    for (i, &x) in a.iter().enumerate() {
        let [nearest, down, up] = [x.round_ties_even(), x.floor(), x.ceil()];
        // Rust's casts saturate too, and send NaN to 0.
        let double_to_int = if x.is_nan() { i32::MIN } else { x as i32 };
        let exact = [
            nearest as i32,
            down as i32,
            up as i32,
            x as i32,
            nearest as u32 as i32,
            down as u32 as i32,
            x.to_bits() as i32,
            double_to_int,
        ];
        assert_eq!(y[8 * i..8 * i + 8], exact, "{x}");
        let exact = match x.is_nan() {
            true => [i64::MIN, i64::MIN, i64::MIN, f64::from(x).to_bits() as i64],
            false => [nearest as i64, down as i64, x as u64 as i64, f64::from(x).to_bits() as i64],
        };
        assert_eq!(z[4 * i..4 * i + 4], exact, "{x}");
    }
}

#[test]
fn bit_operations() {
    let (device, mut rng) = (Device::compile("math.cu"), random());
    let n = 200;
    let [a, b] =
        [0, 1].map(|_| (0..n).map(|i| if i < 3 { [0, 1, u32::MAX][i] } else { rng.u32(..) }).collect::<Vec<_>>());
    let mut y = vec![0u32; 18 * n];
    device.launch("bits", 4u32, 64u32, Params::new().slice(&a).slice(&b).out(&mut y).value(n as i32)).unwrap();
    let first = |x: u64| if x == 0 { 0 } else { x.trailing_zeros() + 1 };
    for (i, found) in y.chunks(18).enumerate() {
        let (u, v) = (a[i], b[i]);
        let wide = u64::from(u) << 32 | u64::from(v);
        let pair = u64::from(v) << 32 | u64::from(u);
        let bytes = [u.to_le_bytes(), v.to_le_bytes()].concat();
        // Selector 0x5a03: bytes 3, 0, the sign of byte 2, 5.
        let sign = if bytes[2] & 0x80 != 0 { 0xff } else { 0 };
        let low24 = |x: u32| (x << 8) as i32 >> 8;
        let exact = [
            u.count_ones(),
            u.leading_zeros(),
            first(u.into()),
            u.reverse_bits(),
            u32::from_le_bytes([bytes[3], bytes[0], sign, bytes[5]]),
            ((u64::from(u) * u64::from(v)) >> 32) as u32,
            ((i64::from(u as i32) * i64::from(v as i32)) >> 32) as u32,
            wide.count_ones(),
            wide.leading_zeros(),
            first(wide),
            ((pair << 9) >> 32) as u32,
            low24(u).wrapping_mul(low24(v)) as u32,
            u.abs_diff(v).wrapping_add(5),
            (wide.reverse_bits() >> 32) as u32,
            ((pair << (v & 63).min(32)) >> 32) as u32,
            (pair >> (v & 31)) as u32,
            (pair >> (v & 63).min(32)) as u32,
            ((i64::from(u as i32) + i64::from(v as i32) + 1) >> 1) as u32,
        ];
        assert_eq!(found, exact, "{u:#x} {v:#x}");
    }
}
