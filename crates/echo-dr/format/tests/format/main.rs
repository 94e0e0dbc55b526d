//! Tests of the formats through their public interface.

mod arbitrary;
mod malformed;
mod pages;
mod round_trip;
