//! Descriptions that the tests of the forms share.

use crate::{Buffer, Outcome, PairReport, Place, ReasonReport, Step, Wait};

fn place(line: u32) -> Place {
    Place { file: "a.cu".to_owned(), line, column: 5 }
}

fn pair(outcome: Outcome) -> PairReport {
    PairReport {
        function: "main".to_owned(),
        host: Buffer { name: "h".to_owned(), site: place(3) },
        device: Buffer { name: "d".to_owned(), site: place(4) },
        bytes: None,
        outcome,
        copies: vec![place(7)],
        saved_per_iteration: None,
        waits: Vec::new(),
        notes: Vec::new(),
        reasons: Vec::new(),
    }
}

/// A pair that was merged.
#[must_use]
pub fn merged() -> PairReport {
    PairReport {
        bytes: Some(4096),
        copies: vec![place(7), place(9)],
        waits: vec![Wait { site: place(9), scope: "device".to_owned() }],
        notes: vec!["right only on devices with concurrentManagedAccess".to_owned()],
        ..pair(Outcome::Merged)
    }
}

/// A pair that two conditions decline.
#[must_use]
pub fn declined() -> PairReport {
    let reasons = vec![
        ReasonReport {
            number: "ESR210".to_owned(),
            code: "S1-device-value-overwritten".to_owned(),
            message: "`h` is written while `d` is needed".to_owned(),
            help: "write another buffer".to_owned(),
            at: place(8),
            witness: vec![
                Step { site: place(8), text: "writes `h`".to_owned() },
                Step { site: place(9), text: "kernel reads `d`".to_owned() },
            ],
            suggestion: None,
        },
        ReasonReport {
            number: "ESR220".to_owned(),
            code: "S2-kernel-pending".to_owned(),
            message: "a kernel may be running".to_owned(),
            help: "wait for the work".to_owned(),
            at: place(10),
            witness: Vec::new(),
            suggestion: Some("wait for the stream before a.cu:10".to_owned()),
        },
    ];
    PairReport { reasons, ..pair(Outcome::Declined) }
}
