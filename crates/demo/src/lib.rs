//! Shows the main job of Weir, end to end, in about a minute.
//!
//! ```text
//!   h1 h2   h3 h4            Open vSwitch in a lab, or an emulated switch
//!    └┬──────┬┘
//!     s1 ───────► weir serve (a child process) ──► red's controller, a second one of red's that misbehaves
//!                                              └─► blue's controller
//! ```
//!
//! Every started process or thread has an owner value, and ends when this value is dropped. So every end of the demo
//! (success, an error, Ctrl-C, a closed stdout) leaves nothing behind. Start reading at [`run`]; the story is in
//! `story`, and the latency is measured in `latency`.
//!
//! The crate deliberately has no knowledge of the hypervisor: the demo runs `weir serve` as an operator would. Errors
//! are [`anyhow`]'s, because the user of a demo needs only the reason of the end.

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

/// Runs the demo, prints the output on stdout, and returns the number of expectations that were not met.
///
/// # Errors
/// The failed start or measurement; [`lab::Interrupted`].
pub fn run(settings: &Settings, interrupt: &Interrupt) -> anyhow::Result<usize> {
    let started = Instant::now();
    let folder = Folder::claim(&settings.out, settings.keep)?;
    let mut screen = Screen::new();
    story::run(&mut screen, interrupt, settings, &folder.work())?;
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
