//! The `weir` command: one file per subcommand under `commands`, one enumeration of exit statuses.
//!
//! Deliberately without work of its own: what a command does is in the crate that it is named after. stdout is data,
//! stderr is talk. Start reading at [`commands`].

// Doc comments are help texts here: brackets mean what may be left out, or a section of a file.
#![allow(rustdoc::broken_intra_doc_links)]
#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "nothing of a program can be reached from outside")]

mod commands;
mod exit;
mod out;
mod signals;
mod talk;

use clap::Parser;
use commands::Command;
use exit::Exit;
use std::process::ExitCode;

/// Threads that do nothing but forward messages are the point: an allocator with per-thread heaps keeps them apart.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Share an OpenFlow network among tenants, and prove that they do not feel each other
#[derive(Parser)]
#[command(name = "weir", version = env!("WEIR_VERSION"), arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    report::environment::program_starts(option_env!("WEIR_COMMIT"));
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are not errors, and go to stdout.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            let _ = error.print();
            return exit.into();
        }
    };
    report::terminal::fit_tables();
    let result = arguments.command.run();
    report::terminal::quiet();
    signals::let_end();
    result.unwrap_or_else(|error| Exit::of(&error)).into()
}
