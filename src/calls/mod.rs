//! (calls: see the crate docs.)
