//! Requests that a controller sends at once, and the order of the replies.

use super::{Seat, World};

/// A controller sends these requests at once, with transaction ids from 1 on. Gives the messages that the controller
/// receives.
pub fn at_once(world: &mut World, seat: Seat, all: &[&str]) -> Vec<String> {
    for (xid, words) in (1..).zip(all) {
        world.say(seat, xid, words);
    }
    world.advance(1_000_000_000);
    world.heard(seat)
}

/// Whether the replies to all requests before a barrier arrive before the barrier's reply, and all other replies arrive
/// after the barrier's reply.
pub fn is_divided(heard: &[String]) -> bool {
    let replies = heard.iter().filter_map(|it| it.split_once(' '));
    let replies = replies.filter_map(|(xid, it)| Some((xid.parse().ok()?, it)));
    let replies: Vec<(u32, &str)> = replies.collect();
    let is_between = |at: usize| {
        let (before, after) = replies.split_at(at);
        let barrier = replies[at].0;
        before.iter().all(|it| it.0 < barrier) && after[1..].iter().all(|it| it.0 > barrier)
    };
    (0..replies.len()).filter(|at| replies[*at].1 == "BARRIER_REPLY").all(is_between)
}
