//! The main job of Weir, end to end, in about a minute.
//!
//! ```text
//!   h1 h2   h3 h4            Open vSwitch in a lab, or an emulated switch
//!    └┬──────┬┘
//!     s1 ───────► weir serve (a child process) ──► red's controller, a second one of red's that misbehaves
//!                                              └─► blue's controller
//! ```
//!
//! Whatever is started is owned by a value that ends it when dropped, so every end (done, an error, Ctrl-C, a reader
//! who went away) leaves nothing behind. Start reading at [`run`]; the story is in `story`, what it costs in
//! `latency`.
//!
//! Deliberately without knowledge of the hypervisor: it runs `weir serve` as an operator would. Errors are [`anyhow`]'s:
//! the user of a demo can only be told why it ended.

#![forbid(unsafe_code)]

mod folder;
mod intruder;
mod latency;
mod network;
mod peers;
mod screen;
mod settings;
mod story;

pub use settings::Settings;

use folder::Folder;
use lab::Interrupt;
use screen::Screen;
use std::time::Instant;

/// Shows it on stdout, and says how many things were not as they should be.
///
/// # Errors
/// What could not be started or measured; [`lab::Interrupted`].
pub fn run(settings: &Settings, interrupt: &Interrupt) -> anyhow::Result<usize> {
    let started = Instant::now();
    let folder = Folder::claim(&settings.out, settings.keep)?;
    let mut screen = Screen::new();
    story::tell(&mut screen, interrupt, settings, &folder.work())?;
    latency::measure(&mut screen, interrupt, settings, &folder)?;
    screen.blank()?;
    let seconds = started.elapsed().as_secs();
    let failures = screen.failures();
    screen.line(&match failures {
        0 if screen.is_something_undecided() => {
            format!("All that could be judged is as it should be, in {seconds} s.")
        }
        0 => format!("All as it should be, in {seconds} s."),
        1 => format!("1 thing was not as it should be ({seconds} s)."),
        many => format!("{many} things were not as they should be ({seconds} s)."),
    })?;
    let page = settings.out.join("report.html");
    screen.line(&format!("Results: {}", page.display()))?;
    if settings.keep {
        screen.line(&format!("Kept:    {}", settings.out.join("work").display()))?;
    }
    folder.finish(screen.transcript())?;
    Ok(failures)
}
