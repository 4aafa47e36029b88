//! `weir demo`: the main job, end to end, in about a minute.
//!
//! ```text
//!   h1 h2   h3 h4            Open vSwitch in a lab, or an emulated switch
//!    └┬──────┬┘
//!     s1 ───────► weir serve (a child process) ──► red's controller, a second one of red's that misbehaves
//!                                              └─► blue's controller
//! ```
//!
//! Whatever is started is owned by a value that ends it when dropped, so every way out (done, an error, Ctrl-C, a reader
//! who went away) leaves nothing behind. Start reading at [`Demo::run`]; the story is in [`story`], what it costs in
//! [`latency`].

mod intruder;
mod latency;
mod network;
mod peers;
mod screen;
mod story;

use crate::exit::Exit;
use crate::signals;
use anyhow::Context;
use lab::{Interrupt, Interrupted};
use screen::Screen;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Show in a minute that tenants cannot touch, see or slow each other
///
/// Two tenants with two hosts each on a private Open vSwitch, each with its own controller, and `weir serve` between:
/// who reaches whom, what a tenant may not do, and what Weir costs in latency. Without root or Open vSwitch, the same on
/// an emulated switch. It leaves nothing behind but the results. Exit status 0: all was as it should be; 1: not all.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir demo
  weir demo --quick --protocols 1.3 --out /tmp/demo

See docs/demo.md.")]
pub struct Demo {
    /// Where the results go: the page report.html, its data, and this output
    #[arg(long, value_name = "DIR", default_value = "weir-demo", value_parser = crate::out::folder)]
    out: PathBuf,
    /// Keep the configuration files and logs as well, in DIR/work
    #[arg(long)]
    keep: bool,
    /// Measure for a few seconds only
    #[arg(long)]
    quick: bool,
    /// The OpenFlow version that the switch speaks
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    protocols: Protocol,
    /// Emulate the switch even where Open vSwitch could be used
    #[arg(long)]
    emulated: bool,
}

/// A version of OpenFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Protocol {
    /// OpenFlow 1.0
    #[value(name = "1.0", alias = "OpenFlow10")]
    V1_0,
    /// OpenFlow 1.3
    #[value(name = "1.3", alias = "OpenFlow13")]
    V1_3,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Protocol::V1_0 => "OpenFlow 1.0",
            Protocol::V1_3 => "OpenFlow 1.3",
        }
    }
}

impl Demo {
    pub fn run(self) -> anyhow::Result<Exit> {
        let interrupt = signals::interrupt()?;
        let outcome = self.perform(&interrupt);
        // What failed because it was interrupted did not fail.
        if interrupt.is_asked() && outcome.is_err() {
            return Err(Interrupted.into());
        }
        outcome
    }

    fn perform(&self, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let started = Instant::now();
        let folder = Folder::claim(&self.out, self.keep)?;
        let mut screen = Screen::new();
        story::tell(&mut screen, interrupt, self, &folder.work())?;
        latency::measure(&mut screen, interrupt, self, &folder)?;
        screen.blank()?;
        let seconds = started.elapsed().as_secs();
        let exit = match screen.failures() {
            0 => {
                screen.line(&format!("All as it should be, in {seconds} s."))?;
                Exit::Success
            }
            1 => {
                screen.line(&format!("1 thing was not as it should be ({seconds} s)."))?;
                Exit::Finding
            }
            many => {
                screen.line(&format!("{many} things were not as they should be ({seconds} s)."))?;
                Exit::Finding
            }
        };
        let page = self.out.join("report.html");
        screen.line(&format!("Results: {}", page.display()))?;
        if self.keep {
            screen.line(&format!("Kept:    {}", self.out.join("work").display()))?;
        }
        folder.finish(screen.transcript())?;
        Ok(exit)
    }

    /// Whether the switch can be a real one.
    fn has_open_vswitch(&self) -> bool {
        !self.emulated && network::missing().is_empty()
    }

    fn version(&self) -> openflow::Version {
        match self.protocols {
            Protocol::V1_0 => openflow::Version::V1_0,
            Protocol::V1_3 => openflow::Version::V1_3,
        }
    }
}

/// The results' folder, and in it the folder of everything that goes when the demo ends.
struct Folder {
    out: PathBuf,
    /// Whether it is ours to remove when there are no results.
    is_new: bool,
    keep: bool,
}

impl Folder {
    fn claim(out: &Path, keep: bool) -> anyhow::Result<Folder> {
        let is_new = !out.exists();
        let fail = || format!("cannot use --out {}", out.display());
        fs::create_dir_all(out).with_context(fail)?;
        // Programs in other namespaces and folders are told of files in it.
        let out = out.canonicalize().with_context(fail)?;
        let folder = Folder { out, is_new, keep };
        let work = folder.work();
        if work.exists() {
            fs::remove_dir_all(&work).with_context(fail)?;
        }
        fs::create_dir(&work).with_context(fail)?;
        Ok(folder)
    }

    fn work(&self) -> PathBuf {
        self.out.join("work")
    }

    fn finish(mut self, transcript: &str) -> anyhow::Result<()> {
        let file = self.out.join("demo.txt");
        fs::write(&file, transcript).with_context(|| format!("cannot write {}", file.display()))?;
        self.is_new = false;
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody is left to be told about a folder that cannot be removed.
        if !self.keep {
            let _ = fs::remove_dir_all(self.work());
        }
        if self.is_new {
            let _ = fs::remove_dir_all(&self.out);
        }
    }
}
