//! (lower: see the crate docs.)
