//! `weir pages`, hidden: man pages and shells' completions, for those who make packages.

use crate::exit::Exit;
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
use report::environment::timestamp;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Write man pages and completions into a folder as they lie below /usr/share
#[derive(clap::Args)]
pub struct Pages {
    /// The folder
    share: PathBuf,
}

impl Pages {
    pub fn run(self) -> anyhow::Result<Exit> {
        let man = made(&self.share, "man/man1")?;
        let mut all = program().disable_help_subcommand(true);
        // The names of the pages are those of the commands below all the others.
        all.build();
        man_pages(&all, &man).with_context(|| format!("cannot write {}", man.display()))?;
        for (shell, folder) in [
            (Shell::Bash, "bash-completion/completions"),
            (Shell::Zsh, "zsh/vendor-completions"),
            (Shell::Fish, "fish/vendor_completions.d"),
        ] {
            let folder = made(&self.share, folder)?;
            let file = generate_to(shell, &mut program(), "weir", &folder)
                .with_context(|| format!("cannot write to {}", folder.display()))?;
            // bash looks for a file that is called as the command is.
            if shell == Shell::Bash {
                fs::rename(&file, folder.join("weir")).context("cannot rename the completion")?;
            }
        }
        Ok(Exit::Success)
    }
}

/// The whole command line, as `weir --help` tells it.
fn program() -> clap::Command {
    crate::Arguments::command()
}

/// The man page of a command, and of each command below. Not by `clap_mangen::generate_to`, which sets no date: then the line
/// at the foot of a page has the command's name where readers look for the date.
fn man_pages(command: &clap::Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        man_pages(below, folder)?;
    }
    let now = timestamp();
    let date = now.split('T').next().unwrap_or_default();
    clap_mangen::Man::new(command.clone())
        .date(date)
        .source(concat!("weir ", env!("CARGO_PKG_VERSION")))
        .manual("Weir")
        .generate_to(folder)?;
    Ok(())
}

fn made(share: &Path, folder: &str) -> anyhow::Result<PathBuf> {
    let folder = share.join(folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}
