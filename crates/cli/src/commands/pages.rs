//! `weir pages`, hidden: man pages and shells' completions, for those who make packages.

use crate::exit::Exit;
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
use std::fs;
use std::path::{Path, PathBuf};

/// Write man pages and completions into a folder as they lie below /usr/share
#[derive(clap::Args)]
pub struct Pages {
    /// The folder
    share: PathBuf,
}

impl Pages {
    pub fn run(self) -> anyhow::Result<Exit> {
        let man = made(&self.share, "man/man1")?;
        clap_mangen::generate_to(program(), &man)
            .with_context(|| format!("cannot write {}", man.display()))?;
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

fn made(share: &Path, folder: &str) -> anyhow::Result<PathBuf> {
    let folder = share.join(folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}
