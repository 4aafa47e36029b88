//! The text form of a match, as `ovs-ofctl` reads and prints it (ovs-fields(7)). The parser also
//! accepts the names of the OpenFlow specification.
//!
//! [`vocabulary`] has the words; [`parse`] reads, [`print`] writes; [`flow`] writes whole entries.

mod flow;
mod parse;
mod print;
mod suggest;
mod vocabulary;

pub use flow::FlowText;
pub use parse::{ParseError, Problem};
