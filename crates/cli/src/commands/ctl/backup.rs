//! Writes a copy of the state of a running `weir serve` (`weir ctl backup`).

use super::client::{Answer, Client};
use crate::exit::Exit;
use anyhow::{Context, anyhow};
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes the backup into a new file. If the backup is not complete, the file is removed.
pub(super) fn backup(client: &Client, path: &Path) -> anyhow::Result<Exit> {
    // Only the owner may read the file, because the backup contains Weir's secret.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let name = path.display();
    let mut file = match file {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Ok(Exit::usage(&format!("{name} is there already")));
        }
        file => file.with_context(|| format!("cannot write {name}"))?,
    };
    let downloaded = client.download("/api/v1/backup", &mut file).and_then(|answer| {
        if let Answer::Done(_) = answer {
            file.sync_all().with_context(|| format!("cannot write {name}"))?;
            let bytes = fs::read(path).with_context(|| format!("cannot read {name}"))?;
            let broken = |why| anyhow!("the backup broke off ({why}); {name} was removed");
            daemon::store::check_backup(&bytes).map_err(broken)?;
        }
        Ok(answer)
    });
    if !matches!(downloaded, Ok(Answer::Done(_))) {
        // An incomplete backup is of no use.
        let _ = fs::remove_file(path);
    }
    match downloaded? {
        Answer::Done(_) => Ok(Exit::Success),
        Answer::Refused(failure) => Ok(Exit::finding(&failure.error)),
    }
}
