//! Control sessions capacity (RFC 8456, section 5.2.1): the number of switches that a controller
//! holds at once.
//!
//! The RFC adds one session after the other until the controller drops a session. Here the number
//! is doubled until the controller does not accept all sessions, and then a bisection follows. Each
//! trial uses new connections. All connections must complete the handshake and get one more answer.

use super::context::{Case, Context, Sheet};
use super::test::Test;
use crate::error::Error;
use crate::load::{Kind, Load};
use crate::measure::Measurement;
use crate::session::{Controllers, Session};
use report::Better;

pub(super) const TEST: Test = Test {
    name: "sessions",
    section: "5.2.1",
    about: "how many switches it holds at once",
    needs: &[],
    headline: &["sessions"],
    measure,
};

fn measure(context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
    let case = Case::plain(TEST.name);
    let mut sheet = Sheet::new(context, &case);
    let most = context.plan.most_sessions;
    let mut trials = 0..context.plan.trials;
    while context.next_trial(&case, &mut trials)?.is_some() {
        let held = highest(most, |wanted| {
            context.say(&format!("{wanted} sessions"));
            let held = holds(context, wanted)?;
            context.rest();
            Ok::<_, Error>(held)
        })?;
        sheet.sample("sessions", "", Better::Higher, held as f64);
        if held == most {
            sheet.finding(
                "at-upper-bound",
                &format!("it holds all {most} sessions that were tried"),
            );
        }
    }
    Ok(vec![sheet.finish()])
}

fn holds(context: &Context<'_>, wanted: usize) -> Result<bool, Error> {
    let (setup, stop) = (context.plan.setup(wanted), context.plan.stop.clone());
    match Session::open_until(setup, &Controllers::none(), stop) {
        Ok(mut session) => {
            // An accepted session need not be a held session, so every session must get one more
            // answer.
            let load = Load::constant(Kind::Response, wanted, wanted as f64, 1000);
            let outcome = session.run(&load, &[])?;
            let counts = outcome.counts();
            Ok(counts.unanswered() + counts.blocked == 0 && outcome.faults.of("switch-closed") == 0)
        }
        Err(Error::Handshake { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The highest number from 1 to `most` for which `passes` is true, or 0. If a number passes, every
/// lower number is assumed to pass.
pub(super) fn highest<E>(
    most: usize,
    mut passes: impl FnMut(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    let (mut good, mut wanted) = (0, 1);
    let mut bad = loop {
        wanted = wanted.min(most);
        if !passes(wanted)? {
            break wanted;
        }
        if wanted == most {
            return Ok(most);
        }
        good = wanted;
        wanted *= 2;
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if passes(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_each_session_limit_in_at_most_13_tries() {
        for limit in 0..70 {
            let mut tries = 0;
            let passes = |wanted| {
                tries += 1;
                Ok::<_, ()>(wanted <= limit)
            };
            assert_eq!(highest(50, passes), Ok(limit.min(50)));
            assert!(tries <= 13, "{tries} for {limit}");
        }
        assert_eq!(highest(9, |_| Err("broken")), Err("broken"));
    }
}
