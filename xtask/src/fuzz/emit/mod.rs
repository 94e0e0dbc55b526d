//! Writes programs in CUDA C++: many in one file, so that CUDA's headers are parsed once.
//!
//! `main` takes the first and the last program to run, which of the two inputs, and a zero that the compiler does not know to be one.

mod device;
mod expression;
mod host;
mod memory;

use std::fmt::Write as _;

use super::language::Program;

/// What every file starts with.
const PRELUDE: &str = include_str!("prelude.cuh");

/// What stands before a program's output, with its number.
pub(super) const BEGIN: &str = "# ";
/// What stands behind it, with its exit code.
pub(super) const END: &str = "= ";

/// A file of programs. `in_main`: the first one becomes part of `main`, so that the analysis sees a program from its start.
pub(super) fn file(programs: &[&Program], in_main: bool) -> String {
    let mut text = PRELUDE.to_owned();
    for (position, program) in programs.iter().enumerate() {
        let inline = in_main && position == 0;
        text.push('\n');
        device::kernels(&mut text, program);
        text.push_str(&host::function(program, inline));
    }
    main(&mut text, programs, in_main);
    text
}

fn main(text: &mut String, programs: &[&Program], in_main: bool) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\nstatic const int inputs[][2][2] = {{");
    for Program { inputs: [one, other], .. } in programs {
        let flag = |flag| i32::from(flag);
        let _ = writeln!(
            text,
            "    {{{{{}, {}}}, {{{}, {}}}}},",
            one.rounds,
            flag(one.flag),
            other.rounds,
            flag(other.flag)
        );
    }
    text.push_str("};\n");
    let call = |position: usize| {
        let program = programs[position];
        let n = program.n;
        format!(
            "program_{}(zero + {n}, inputs[{position}][input][0], inputs[{position}][input][1], zero + {n})",
            program.index
        )
    };
    // `optnone` keeps the programs out of `main`, where the plugin would try each a second time: in a loop that never merges a pair, and with
    // verdicts that say nothing of the program.
    text.push_str("\n__attribute__((noinline, optnone)) static int run(int program, int input, int zero) {\n");
    text.push_str("    switch (program) {\n");
    for position in usize::from(in_main)..programs.len() {
        let _ = writeln!(text, "    case {position}: return {};", call(position));
    }
    text.push_str("    }\n    return 96;\n}\n\nint main(int argc, char **argv) {\n");
    text.push_str("    int first = std::atoi(argv[1]), last = std::atoi(argv[2]), input = std::atoi(argv[3]);\n");
    text.push_str(
        "    int zero = argc > 4 ? std::atoi(argv[4]) : 0;\n    setvbuf(stdout, nullptr, _IOLBF, 1 << 16);\n",
    );
    if in_main {
        let _ = writeln!(text, "    if (first == 0) {{\n        std::printf(\"{BEGIN}0\\n\");");
        let _ = writeln!(text, "        int rc = {};", call(0));
        let _ = writeln!(text, "        std::printf(\"{END}%d\\n\", rc);\n        first = 1;\n    }}");
    }
    let _ = writeln!(text, "    for (int program = first; program <= last; program++) {{");
    let _ = writeln!(text, "        std::printf(\"{BEGIN}%d\\n\", program);");
    let _ =
        writeln!(text, "        std::printf(\"{END}%d\\n\", run(program, input, zero));\n    }}\n    return 0;\n}}");
}

/// The element type as C++ calls it.
fn element(program: &Program) -> &'static str {
    use super::language::Element;
    match program.element {
        Element::U8 => "unsigned char",
        Element::U32 => "unsigned",
        Element::U64 => "unsigned long long",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{generate, testing};
    use super::*;

    #[test]
    fn the_text_depends_on_the_program_only() {
        let case = generate::case(1, 5).unwrap();
        assert_eq!(file(&[&case.program], false), file(&[&case.program], false));
    }

    #[test]
    fn a_small_program_is_written_as_one_would() {
        let program = testing::with(vec![
            super::super::language::Kind::Alloc(testing::H),
            super::super::language::Kind::Alloc(testing::D),
            testing::fill(),
            testing::upload(None),
            testing::scale(1),
            testing::download(Some(1)),
            testing::read(),
        ]);
        let text = file(&[&program], false);
        for part in [
            "CHECK(cudaMemcpy(d1, h0, ",
            "cudaMemcpyHostToDevice));",
            "p0_k0<<<blocks(n), 64, 0, s1>>>(d1, 0, n, 3, 5);",
            "cudaMemcpyDeviceToHost, s1));",
            "acc = acc * 31 + h0[i];",
        ] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
    }
}
