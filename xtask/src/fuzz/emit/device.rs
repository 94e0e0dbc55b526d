//! A program's kernels.

use std::fmt::Write as _;

use super::super::language::{Action, Grid, Kernel, Program};
use super::element;

/// Names of the pointer parameters.
const NAMES: [&str; 3] = ["x", "y", "z"];

/// All kernels of a program.
pub(super) fn kernels(text: &mut String, program: &Program) {
    if program.kernels.iter().any(|kernel| matches!(kernel.action, Action::Keep | Action::UseKept)) {
        let _ = writeln!(text, "static __device__ {} *p{}_kept;", element(program), program.index);
    }
    for (number, kernel) in program.kernels.iter().enumerate() {
        write(text, program, number, kernel);
    }
}

fn write(text: &mut String, program: &Program, number: usize, kernel: &Kernel) {
    let (index, element) = (program.index, element(program));
    let pointers: Vec<String> = kernel
        .action
        .parameters()
        .iter()
        .zip(NAMES)
        .map(|((_, writes), name)| match kernel.qualified {
            true if *writes => format!("T *__restrict__ {name}"),
            true => format!("const T *__restrict__ {name}"),
            false => format!("T *{name}"),
        })
        .collect();
    let scalars = ["int lo", "int hi", "unsigned long long a", "unsigned long long c"].map(str::to_owned);
    let parameters = [pointers, scalars.to_vec()].concat();
    let list = |separator: &str| parameters.join(separator).replace("T *", &format!("{element} *"));
    if kernel.structure {
        let fields = list("; ").replace("__restrict__ ", "").replace("const ", "");
        let _ = writeln!(text, "struct p{index}_k{number}_arguments {{ {fields}; }};");
        let _ = writeln!(text, "static __global__ void p{index}_k{number}(p{index}_k{number}_arguments v) {{");
        for (_, name) in kernel.action.parameters().iter().zip(NAMES) {
            let _ = writeln!(text, "    {element} *{name} = v.{name};");
        }
        text.push_str("    int lo = v.lo, hi = v.hi;\n    unsigned long long a = v.a, c = v.c;\n");
    } else {
        let _ = writeln!(text, "static __global__ void p{index}_k{number}({}) {{", list(", "));
    }
    let _ = writeln!(text, "    using T = {element};");
    body(text, program, kernel);
    text.push_str("}\n");
}

fn body(text: &mut String, program: &Program, kernel: &Kernel) {
    let kept = format!("p{}_kept", program.index);
    let one = match kernel.action {
        Action::Keep => {
            let _ = writeln!(text, "    {kept} = x;");
            return;
        }
        Action::Ignore => return,
        Action::Sum => {
            text.push_str("    T sum = 0;\n    for (int i = lo; i < hi; i++) sum += T(y[i] * a + c);\n");
            text.push_str("    if (lo < hi) x[lo] = sum;\n");
            return;
        }
        Action::Shared => {
            text.push_str("    __shared__ T tile[64];\n    int i = lo + blockIdx.x * blockDim.x + threadIdx.x;\n");
            text.push_str("    if (i < hi) tile[threadIdx.x] = y[i];\n    __syncthreads();\n");
            text.push_str("    if (i < hi) x[i] = T(tile[threadIdx.x] * a + c);\n");
            return;
        }
        Action::Fill => "x[i] = T(i * a + c);".to_owned(),
        Action::Scale => "x[i] = T(x[i] * a + c);".to_owned(),
        Action::Map => "x[i] = T(y[i] * a + c);".to_owned(),
        Action::Zip => "x[i] = T(T(y[i] * a + c) + z[i]);".to_owned(),
        Action::Accumulate => "x[i] += T(y[i] * a + c);".to_owned(),
        Action::Shift => "x[i] = T(y[i + 1 < hi ? i + 1 : lo] * a + c);".to_owned(),
        Action::UpdateOdd => "if (x[i] & 1) x[i] = T(x[i] * a + c);".to_owned(),
        Action::FillOdd => "if (y[i] & 1) x[i] = T(i * a + c);".to_owned(),
        Action::Two => "T v = T(z[i] * a + c); x[i] = v; y[i] = T(v * a + c);".to_owned(),
        Action::UseKept => format!("{kept}[i] = T({kept}[i] * a + c);"),
    };
    let _ = match kernel.grid {
        Grid::Each => {
            writeln!(text, "    int i = lo + blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < hi) {{ {one} }}")
        }
        Grid::Stride => writeln!(
            text,
            "    for (int i = lo + blockIdx.x * blockDim.x + threadIdx.x; i < hi; i += gridDim.x * blockDim.x) {{ {one} }}"
        ),
        Grid::Single => writeln!(text, "    for (int i = lo; i < hi; i++) {{ {one} }}"),
    };
}
