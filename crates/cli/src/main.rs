//! The `weir` command: one file per subcommand under `commands`, one enumeration of exit statuses.
//!
//! The program deliberately has no work of its own: the work of a command is in the crate with the command's name.
//! stdout has data, and stderr has messages. Start reading at [`commands`].

// The doc comments of this program are help texts: brackets are optional parts, or a section of a file.
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

/// Most threads of Weir only forward messages. An allocator with per-thread heaps keeps these threads apart.
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
