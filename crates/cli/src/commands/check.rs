//! Shows the effect of a configuration before the configuration is used (`weir check`).

use crate::exit::Exit;
use daemon::check::{Report, Share, ShareOfRate, Shared, check, shares};
use daemon::config::{self, Diagnostic, LoadError};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Show what a configuration does, and what in it is probably a mistake
///
/// Reads the file alone and connects to no switch. Shows errors, each with its line; flowspace that tenants share, and
/// its owner; entries that own nothing, or that OpenFlow 1.0 cannot express. Exit status 0: no findings; 1: findings;
/// 2: errors.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir check weir.toml
  weir check weir.toml --json | jq '.remarks[] | select(.severity == \"finding\")'

See docs/check.md and docs/configuration.md.")]
pub struct Check {
    /// Configuration file
    config: PathBuf,
    /// Also print each tenant's part of each switch: its part of the tables, its rates by the data sheet, and the
    /// reasons
    #[arg(long)]
    limits: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Check {
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut stdout = std::io::stdout().lock();
        let config = match config::load(&self.config) {
            Ok(config) => config,
            Err(error) if self.json => {
                writeln!(stdout, "{:#}", errors(&error))?;
                return Ok(Exit::Usage);
            }
            Err(error) => return Ok(Exit::configuration(&error)),
        };
        let report = check(&config);
        if self.json {
            let limits = self.limits.then(|| shares(&config).collect());
            let whole = Whole { report: &report, limits };
            writeln!(stdout, "{}", serde_json::to_string_pretty(&whole)?)?;
        } else {
            writeln!(stdout, "{report}")?;
            if self.limits {
                shares(&config).try_for_each(|shared| write_shared(&mut stdout, &shared))?;
            }
        }
        Ok(if report.findings() == 0 { Exit::Success } else { Exit::Finding })
    }
}

/// The whole output, as one object.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Vec<Shared>>,
}

/// Writes the sizes of a switch's tables. The size comes from the switch when the switch connects, or from its data
/// sheet.
fn write_shared(out: &mut dyn Write, shared: &Shared) -> std::io::Result<()> {
    write!(out, "switch {}:", shared.switch)?;
    if let Some(file) = &shared.datasheet {
        write!(out, " data sheet {file}")?;
    }
    writeln!(out)?;
    if shared.tenants.is_empty() {
        writeln!(out, "  no tenant has a part of it")?;
    }
    for share in &shared.tenants {
        let Share { tenant, weight, of, most_rules, most_groups, most_meters, rules, rates } =
            share;
        write!(out, "  {tenant}: {weight} of {of} of each table, at most {most_rules} rules")?;
        if let (Some(rules), Some(table)) = (rules, shared.table) {
            write!(out, ", {rules} of the {table} that a table holds by the data sheet")?;
        }
        writeln!(out, "; {most_groups} groups and {most_meters} meters on OpenFlow 1.3")?;
        for ShareOfRate { messages, per_second, burst, why } in rates {
            writeln!(out, "    {messages}: {per_second:.1} per second, {burst} at once: {why}")?;
        }
    }
    Ok(())
}

fn errors(error: &LoadError) -> Value {
    match error {
        LoadError::Invalid(diagnostics) => {
            json!({ "errors": diagnostics.iter().map(diagnostic).collect::<Vec<_>>() })
        }
        LoadError::Read { file, error } => {
            json!({ "errors": [{ "file": file, "message": error.to_string() }] })
        }
    }
}

fn diagnostic(diagnostic: &Diagnostic) -> Value {
    json!({
        "file": diagnostic.file,
        "line": diagnostic.at.line,
        "column": diagnostic.at.column,
        "key": diagnostic.key,
        "message": diagnostic.message,
        "help": diagnostic.help,
    })
}
