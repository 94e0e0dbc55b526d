//! Backends of a merged buffer.
