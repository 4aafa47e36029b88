#![forbid(unsafe_code)]
//! To be filled.
