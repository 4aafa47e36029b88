//! What several test programs, and the fuzz targets, share.
//!
//! [`generate`] turns arbitrary bytes into arbitrary messages, so that property tests and the fuzzer use one generator;
//! [`checks`] holds what must be true of any bytes.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]

pub mod cases;
pub mod checks;
pub mod generate;
pub mod generate_v10;
pub mod generate_v13;
pub mod samples;
pub mod samples_v10;
pub mod samples_v13;
