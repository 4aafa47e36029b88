//! Writes man pages and shell completions for package builders (`weir pages`, a hidden command).

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
        // This call gives each subcommand its full name, which is the name of its page.
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
            // bash looks for a file with the name of the command.
            if shell == Shell::Bash {
                fs::rename(&file, folder.join("weir")).context("cannot rename the completion")?;
            }
        }
        Ok(Exit::Success)
    }
}

/// The whole command line, as in `weir --help`.
fn program() -> clap::Command {
    crate::Arguments::command()
}

/// Writes the man page of a command, and of each subcommand. `clap_mangen::generate_to` sets no date, so the foot of
/// its pages has the command's name in the place of the date. Therefore this function sets the date.
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
