//! (rewrite: see the crate docs.)
