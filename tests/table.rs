//! The examples that must come out right (the design's table), each as a CUDA program through clang (`tests/programs`, run by
//! `xtask/tests/programs.rs` on the CPU device) and as LLVM IR through `opt` (`tests/ir`, run by `tests/ir.rs`).

use std::path::Path;

/// What a program of the table must get.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Accept,
    /// With a reason whose code begins so.
    Decline(&'static str),
}

use Verdict::{Accept, Decline};

/// A row, in the design's words; its verdict; the CUDA program and the IR program.
type Row = (&'static str, Verdict, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("the paper's figure 1 (a)", Accept, "accept_figure_1", "merge-figure-1"),
    (
        "figure 2 S1 (h[0] = 999 before the kernel)",
        Decline("S1"),
        "decline_s1_store_after_upload",
        "keep-store-after-upload",
    ),
    (
        "the same, the kernel writes all and reads none",
        Accept,
        "accept_kernel_overwrites_all",
        "merge-kernel-overwrites-all",
    ),
    ("figure 2 S2 (use(h[0]) after the download)", Accept, "accept_s2_read_after_download", "merge-figure-1"),
    ("figure 2 S3 (h == d)", Decline("S3"), "decline_s3_compared", "keep-compared"),
    ("h == NULL", Accept, "accept_s3_null_checks", "merge-null-check"),
    ("figure 2 S4 (free(h) after the upload)", Accept, "accept_s4_freed_before_kernel", "merge-freed-before-kernel"),
    ("input only read, host reads h later, record", Accept, "accept_input_read_again", "merge-input-read-again"),
    ("the same without a record", Decline("S1"), "decline_s1_kernel_not_known", "keep-kernel-not-known"),
    ("output only, memset(h, 0) before", Accept, "accept_output_cleared_first", "merge-output-cleared-first"),
    (
        "loop without a wait before the next fill",
        Decline("S2"),
        "decline_s2_fill_without_wait",
        "keep-host-write-before-wait",
    ),
    (
        "unrelated kernel in flight, concurrent access",
        Accept,
        "accept_s5_unrelated_work_concurrent",
        "merge-beside-unrelated-work",
    ),
    ("the same, exclusive access", Decline("S5"), "decline_s5_unrelated_work", "keep-unrelated-work-in-flight"),
    ("checked cudaMalloc, n from argv", Accept, "accept_checked_dynamic_size", "merge-checked-dynamic-size"),
    ("std::vector, RAII device buffer, both inlined", Accept, "accept_vector_and_raii", "merge-vector"),
    ("host buffer copied to two device buffers", Accept, "accept_one_of_two_devices", "merge-one-of-two"),
    (
        "d in a callee that stays a call, spliced",
        Accept,
        "accept_splice_device_in_callee",
        "merge-device-buffer-of-a-callee",
    ),
    ("the same, not spliced", Decline("S4"), "decline_splice_recursive", "keep-buffer-of-an-unknown-caller"),
];

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The other tests run whatever is in the two folders, against the verdict in each file's head. Here: each row has both programs, and what
/// their heads say is the row's verdict.
#[test]
fn every_row_of_the_table_is_a_program_through_clang_and_through_ir() {
    for (words, verdict, cuda, ir) in ROWS {
        let cuda_text = read(&format!("tests/programs/{cuda}.cu"));
        let expected: Vec<&str> = cuda_text.lines().filter_map(|line| line.strip_prefix("// EXPECT ")).collect();
        let as_said = |line: &&str| match verdict {
            Accept => line.contains(" accept") || line.ends_with(" one"),
            Decline(prefix) => line.contains(&format!(" decline {prefix}")),
        };
        assert!(!expected.is_empty() && expected.iter().all(as_said), "{words}: {cuda}.cu expects {expected:?}");
        let ir_text = read(&format!("tests/ir/{ir}.ll"));
        let first = ir_text.lines().find_map(|line| line.strip_prefix("; EXPECT: ")).unwrap_or_default();
        let holds = match verdict {
            Accept => first == "merged",
            Decline(prefix) => first.split_whitespace().any(|code| code.starts_with(prefix)),
        };
        assert!(holds, "{words}: {ir}.ll expects {first}");
    }
}
