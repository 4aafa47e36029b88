//! Repeats published measurements: the runs of a paper, the published values as data, and figures of the values
//! measured here next to the published values. There is one module per paper.
//!
//! This crate deliberately does not depend on `hypervisor` and `daemon`: the experiments measure from outside, with the
//! public interfaces of the instruments. The command line, not this crate, has the options and prints the results.
//! Errors are those of [`anyhow`]: the user of an experiment only needs the reason for its end. Start reading at
//! [`published`].

#![forbid(unsafe_code)]

pub mod basta2017;
pub mod elbouanani2019;
pub mod oflops2012;
pub mod published;
mod reproduction;
pub mod riggio2013;
pub mod riggio2013_edge;
mod vnics;

pub use reproduction::Reproduction;
