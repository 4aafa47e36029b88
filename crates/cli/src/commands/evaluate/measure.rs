//! Runs experiments on one switch.

use super::effort::Effort;
use super::target::Target;
use crate::{signals, talk};
use evaluate::modules::Timestamp;
use evaluate::{Evaluation, Experiment, RunOptions};
use lab::Interrupted;
use report::Environment;
use report::pace::left_after;
use std::time::Instant;

/// Runs experiments one after another on one switch. Before the experiments, measures the floor of the tool itself, if
/// there are looped interfaces.
pub fn measure(
    tool: &str,
    target: &Target,
    effort: &Effort,
    floor: &Timestamp,
    experiments: &[Box<dyn Experiment>],
) -> anyhow::Result<Evaluation> {
    let interrupt = signals::interrupt()?;
    let options = RunOptions::new(interrupt.flag());
    let peers: &[(&str, &str, &[&str])] = &[("openvswitch", "ovs-vswitchd", &["--version"])];
    let mut evaluation = Evaluation::new(tool, environment(peers));
    let settings = &mut evaluation.results.settings;
    settings.insert("repetitions".to_owned(), effort.common().repetitions.into());
    settings.insert("rate".to_owned(), effort.common().rate.into());
    settings.insert("length".to_owned(), (effort.common().length as u32).into());
    let mut bed = target.open()?;
    if let Some(looped) = &mut bed.looped {
        talk::progress("floor: two looped interfaces");
        let outcome = step(evaluate::run(looped.as_mut(), floor.module().as_mut(), &options))?;
        evaluation.add("tool", "floor", &outcome);
    }
    let mut testbed = bed.connect()?;
    evaluation.describe(testbed.as_ref());
    evaluation.ask_description(testbed.as_mut(), options.patience)?;
    let count = experiments.len();
    let start = Instant::now();
    for (index, experiment) in experiments.iter().enumerate() {
        let name = experiment.name();
        let left = match index {
            0 => ", at most 10 min each".to_owned(),
            _ => left_after(index, count, start.elapsed()),
        };
        talk::progress(&format!("{name} ({} of {count}{left})", index + 1));
        bed.prepare(name)?;
        let mut module = experiment.module();
        let outcome = match evaluate::run(testbed.as_mut(), module.as_mut(), &options) {
            // The interrupted experiment has no result, but earlier experiments have results.
            Err(evaluate::Error::Interrupted) if index > 0 => None,
            outcome => Some(step(outcome)?),
        };
        let is_whole = outcome.as_ref().is_some_and(|outcome| outcome.partial.is_none());
        if let Some(outcome) = outcome {
            let system = testbed.bench().name.clone();
            evaluation.add(&system, name, &outcome);
        }
        if interrupt.is_asked() && (index + 1 < count || !is_whole) {
            let text = format!("interrupted in experiment {} of {count}, {name}", index + 1);
            evaluation.results.mark_partial(&text);
            break;
        }
    }
    testbed.finish()?;
    Ok(evaluation)
}

/// The machine and the command, without the credentials of the switch's SNMP agent.
fn environment(peers: &[(&str, &str, &[&str])]) -> Environment {
    let mut environment = Environment::capture(peers);
    let mut is_agent = false;
    for word in &mut environment.command {
        let start = if word.starts_with("--snmp=") { "--snmp=".len() } else { 0 };
        if is_agent || start > 0 {
            let place = word[start..].split(',').next().unwrap_or_default();
            *word = format!("{}{place},...", &word[..start]);
        }
        is_agent = word == "--snmp";
    }
    environment
}

/// The user's request to end is no failure.
fn step<T>(result: evaluate::Result<T>) -> anyhow::Result<T> {
    result.map_err(|error| match error {
        evaluate::Error::Interrupted => Interrupted.into(),
        other => other.into(),
    })
}
