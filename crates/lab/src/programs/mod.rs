//! Starts programs beside a lab's switches: `weir serve` and tenants' controllers, as an operator would start them.
//! Dropping the handle of a program ends the program.

mod os_ken;
mod process;

pub use crate::command::find_program;
pub use os_ken::{no_os_ken, os_ken_python};
pub use process::{Process, Weir, own_program};
