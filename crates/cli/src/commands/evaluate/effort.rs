//! The options for the number of repetitions, and for the rate and length of probes.

use evaluate::Common;
use evaluate::modules::Timestamp;

/// How much of it.
#[derive(clap::Args)]
pub struct Effort {
    /// How often each case is measured, 1 to 10000 [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: Option<u32>,
    /// Probes per second
    #[arg(long, value_name = "RATE", default_value = "12500", value_parser = rate)]
    rate: f64,
    /// Bytes of a probe, without the frame check sequence, 60 to 9000
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u16).range(60..=9000))]
    length: u16,
    /// Seconds that the switch has for each step, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=600))]
    patience: u16,
    /// Three repetitions and fewer cases: a quick look, too short for conclusions
    #[arg(long)]
    quick: bool,
}

impl Effort {
    pub fn common(&self) -> Common {
        Common {
            repetitions: self.repetitions.unwrap_or(if self.quick { 3 } else { 10 }),
            rate: self.rate,
            length: self.length.into(),
            patience: u64::from(self.patience) * 1_000_000_000,
        }
    }

    /// Whether the measurement is only a quick look.
    pub fn is_quick(&self) -> bool {
        self.quick
    }

    /// The reference measurement: a second of probes on looped interfaces.
    pub fn floor(&self) -> Timestamp {
        Timestamp { common: self.common(), duration: 1_000_000_000 }
    }
}

/// Reads a number of probes per second.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (1.0..=10_000_000.0).contains(rate));
    rate.ok_or_else(|| "not a number of probes per second within 1 to 10000000".to_owned())
}
