//! (report: see the crate docs.)
