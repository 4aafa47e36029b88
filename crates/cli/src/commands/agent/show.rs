//! Prints the output of an agent.

use agent::Sent;
use agent::edge::{Counts, Status};
use agent::standing::Sampling;
use fabric::Bandwidth;
use serde_json::json;
use std::io::Write;
use std::time::Duration;

/// Prints one line for each VNIC, as text or as JSON.
pub fn status(vnics: &[Status], elapsed: Duration, as_json: bool) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let elapsed = elapsed.as_secs_f64();
    if as_json {
        let bits = |rate: Bandwidth| rate.bits_per_second();
        let vnic = |vnic: &Status| {
            let pairs = vnic.destinations.iter();
            let to = |(name, rate, most): &(String, Bandwidth, Bandwidth)| json!({ "to": name, "bits_per_second": bits(*rate), "most": bits(*most) });
            json!({
                "vnic": vnic.name, "received": bits(vnic.received), "sent": bits(vnic.sent),
                "congested": vnic.congested, "shaped": vnic.shaped,
                "destinations": pairs.map(to).collect::<Vec<_>>(),
            })
        };
        let vnics: Vec<_> = vnics.iter().map(vnic).collect();
        return writeln!(stdout, "{}", json!({ "seconds": elapsed, "vnics": vnics }));
    }
    writeln!(stdout, "{elapsed:>7.1} s   received       sent  Mb/s, and to whom (of at most)")?;
    for vnic in vnics {
        let sends = vnic.destinations.iter().filter(|(_, rate, _)| *rate > Bandwidth::ZERO);
        let to: Vec<String> = sends
            .map(|(name, rate, most)| format!("{name} {:.2} ({:.2})", mbit(*rate), mbit(*most)))
            .collect();
        let remark = match (vnic.shaped, vnic.congested) {
            (false, _) => "  its interface is away",
            (true, true) => "  congested",
            (true, false) => "",
        };
        writeln!(
            stdout,
            "{:>9} {:>10.2} {:>10.2}  {}{remark}",
            vnic.name,
            mbit(vnic.received),
            mbit(vnic.sent),
            to.join(", ")
        )?;
    }
    stdout.flush()
}

/// The description of a sampler's work.
pub fn sampler(sampling: &Sampling) -> String {
    match sampling {
        Sampling::Interface(own) => format!("sampling one of {} on {}", own.one_in, own.interface),
        Sampling::Bridge(it) => {
            format!("Open vSwitch samples one of {} on {}", it.sampling.one_in, it.bridge)
        }
    }
}

/// The numbers of sent samples, sent datagrams and lost samples of Weir's own samplers.
pub fn sent(sent: &Sent) -> String {
    format!("{} samples in {} datagrams, {} lost", sent.samples, sent.datagrams, sent.lost)
}

/// The counts as one sentence.
pub fn counts(counts: &Counts) -> String {
    let refused = counts.garbage + counts.strangers + counts.repeated;
    let mut text = format!("{} steps, {} late", counts.steps, counts.late);
    if counts.sent + counts.taken + refused > 0 {
        text += &format!(
            "; {} datagrams sent, {} taken, {refused} refused ({} garbage, {} of strangers, {} repeated), {} before a greeting",
            counts.sent,
            counts.taken,
            counts.garbage,
            counts.strangers,
            counts.repeated,
            counts.unplaced
        );
    }
    let odd = counts.oddities;
    if odd.misplaced + odd.impossible > 0 {
        text += &format!("; {} entries misplaced, {} impossible", odd.misplaced, odd.impossible);
    }
    text
}

fn mbit(rate: Bandwidth) -> f64 {
    rate.bits_per_second() as f64 / 1e6
}
