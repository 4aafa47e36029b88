//! Runs a scenario: `scenario NAME OUT_DIR [quick] -- COMMAND…`; without a command HAProxy takes
//! the place of the hypervisor; HAProxy does not separate tenants.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to the terminal")]

use bench::scenarios::{Options, Scenario, run};
use bench::{System, Tenancy};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().ok_or("which scenario?")?;
    let out = PathBuf::from(arguments.get(1).ok_or("which directory for the results?")?);
    let command: Vec<String> =
        arguments.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let subject = if command.is_empty() {
        System::Haproxy { program: PathBuf::from("haproxy") }
    } else {
        System::Weir { command, extra: String::new(), tenancy: Tenancy::default() }
    };
    let mut options = Options::new(subject, out.join("work"));
    if arguments.get(2).is_some_and(|word| word == "quick") {
        options = options.quick();
    }
    let verdict = run(name.parse::<Scenario>()?, &options, &mut |line| eprintln!("{line}"))?;
    print!("{}\n{}", verdict.table(), verdict.criteria_table());
    for finding in &verdict.results.findings {
        println!("{}: {}", finding.code, finding.text);
    }
    verdict.write(&out)?;
    Ok(())
}
