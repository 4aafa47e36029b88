//! Published measurements, made again: a paper's runs, what it prints as data, and its figures drawn from what is measured
//! here, with the published values beside. One module per paper.
//!
//! Deliberately without knowledge of `hypervisor` and `daemon`: everything is measured from outside, on the instruments'
//! public interfaces. Also without options and printing of results, which are the command line's. Errors are [`anyhow`]'s:
//! the user of an experiment can only be told why it ended. Start reading at [`published`].

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
