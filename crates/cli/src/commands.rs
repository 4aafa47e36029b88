//! The subcommands of `weir`, with one module for each.

mod agent;
mod bench;
mod check;
mod ctl;
mod data_port;
mod demo;
mod evaluate;
mod fabric;
mod lab;
#[cfg(feature = "pages")]
mod pages;
mod report;
mod reproduce;
mod sampling;
mod serve;
mod switches;

use crate::exit::Exit;
use clap::Subcommand;

/// One variant per subcommand.
#[derive(Subcommand)]
pub enum Command {
    Serve(serve::Serve),
    Check(check::Check),
    Ctl(ctl::Ctl),
    Demo(demo::Demo),
    Bench(bench::Bench),
    Evaluate(evaluate::Evaluate),
    Fabric(fabric::Fabric),
    Lab(lab::LabCommand),
    Agent(agent::Agent),
    Sampling(sampling::Sampling),
    Report(report::Report),
    Reproduce(reproduce::Reproduce),
    #[cfg(feature = "pages")]
    #[command(hide = true)]
    Pages(pages::Pages),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            Command::Serve(serve) => serve.run(),
            Command::Check(check) => check.run(),
            Command::Ctl(ctl) => ctl.run(),
            Command::Demo(demo) => demo.run(),
            Command::Bench(bench) => bench.run(),
            Command::Evaluate(evaluate) => evaluate.run(),
            Command::Fabric(fabric) => fabric.run(),
            Command::Lab(lab) => lab.run(),
            Command::Agent(agent) => agent.run(),
            Command::Sampling(sampling) => sampling.run(),
            Command::Report(report) => report.run(),
            Command::Reproduce(reproduce) => reproduce.run(),
            #[cfg(feature = "pages")]
            Command::Pages(pages) => pages.run(),
        }
    }
}
