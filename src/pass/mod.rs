//! (pass: see the crate docs.)
