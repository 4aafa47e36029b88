//! The two security benchmarks: exception handling (RFC 8456, section 5.3.1) and denial of service
//! (section 5.3.2). Both repeat other benchmarks with a disturbance, and once without the
//! disturbance, so that each figure can be compared with the undisturbed figure.
//!
//! Exceptions: the emulated switches themselves send malformed messages, 1 and 2 for every 100 of
//! the steady rate. Denial of service: strangers connect to each attacked interface. A stranger
//! either sends nonsense and disconnects, or stays connected and silent. There are no attacks below
//! TCP, because such attacks need raw sockets, and measure the kernel.

use super::context::{Case, Context};
use super::test::Test;
use super::trouble::Trouble;
use super::{change_detection, messages, path_rate, path_time};
use crate::error::Error;
use crate::measure::Measurement;
use report::Scalar;

pub(super) const EXCEPTIONS: Test = Test {
    name: "exceptions",
    section: "5.3.1",
    about: "the path, change and message benchmarks with 0, 1 and 2 % malformed messages",
    needs: &[],
    headline: HEADLINE,
    measure: exceptions,
};
pub(super) const DENIAL_OF_SERVICE: Test = Test {
    name: "denial-of-service",
    section: "5.3.2",
    about: "the same while strangers connect, and talk nonsense or stay",
    needs: &[],
    headline: HEADLINE,
    measure: denial_of_service,
};
const HEADLINE: &[&str] =
    &["path_ms", "paths_per_s", "detection_ms", "p50_us", "p99_us", "failed_percent"];

/// The repeated benchmark.
type Repeated = fn(&mut Context<'_>, &Case) -> Result<Measurement, Error>;
const REPEATED: [(Test, Repeated); 4] = [
    (path_time::REACTIVE, path_time::reactive),
    (path_rate::REACTIVE, path_rate::reactive),
    (change_detection::TEST, change_detection::change),
    (messages::LATENCY, messages::steady),
];

fn exceptions(context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
    let rate = context.plan.steady_rate;
    let percent = |percent: f64| {
        let trouble = Trouble::Malformed { per_second: rate * percent / 100.0 };
        (Scalar::from(percent), if percent > 0.0 { trouble } else { Trouble::None })
    };
    repeat(context, EXCEPTIONS, "malformed_percent", &[0.0, 1.0, 2.0].map(percent))
}

fn denial_of_service(context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
    let attacked = context.plan.attacked();
    let attack = |nonsense| Trouble::Attack { at: attacked.clone(), nonsense };
    let attacks = [
        ("none".into(), Trouble::None),
        ("nonsense".into(), attack(true)),
        ("silence".into(), attack(false)),
    ];
    repeat(context, DENIAL_OF_SERVICE, "attack", &attacks)
}

fn repeat(
    context: &mut Context<'_>,
    test: Test,
    parameter: &'static str,
    troubles: &[(Scalar, Trouble)],
) -> Result<Vec<Measurement>, Error> {
    let mut measured = Vec::new();
    for (of, repeated) in REPEATED {
        for (value, trouble) in troubles {
            let case = Case { trouble: trouble.clone(), ..Case::plain(test.name) };
            let case = case.with("of", of.name).with(parameter, value.clone());
            let measurement = repeated(context, &case)?;
            let is_possible = !measurement.point.metrics.is_empty();
            measured.push(measurement);
            if !is_possible {
                // Without a result there is nothing to disturb, so the trials with a disturbance
                // are omitted.
                break;
            }
        }
    }
    Ok(measured)
}
