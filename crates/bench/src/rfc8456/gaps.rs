//! Arrived packets, and the gaps and losses between these packets.

use super::event::What;
use super::fabric::{End, Fabric};
use crate::error::Error;
use std::collections::BTreeSet;

/// Arrivals at an end, in the events from `mark` on: the time and the packet's number.
pub(super) fn arrivals(fabric: &Fabric, mark: usize, end: End) -> Result<Vec<(u64, u64)>, Error> {
    let events = fabric.events(mark)?;
    let arrived = events.iter().filter_map(|event| match event.what {
        What::Delivered { tag: Some(tag) } if end.is(event.place) => Some((event.at, tag)),
        _ => None,
    });
    Ok(arrived.collect())
}

/// The longest time between two consecutive arrivals, if the second arrival is after `from`.
pub(super) fn longest_gap(times: &[u64], from: u64) -> u64 {
    let pairs = times.iter().zip(times.iter().skip(1));
    pairs.filter(|(_, after)| **after > from).map(|(a, b)| b - a).max().unwrap_or(0)
}

/// The number of lost packets between the first and the last arrived packet.
pub(super) fn lost(arrivals: &[(u64, u64)]) -> u64 {
    let tags: BTreeSet<u64> = arrivals.iter().map(|(_, tag)| *tag).collect();
    let ends = tags.first().zip(tags.last());
    ends.map_or(0, |(first, last)| last - first + 1 - tags.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_that_end_before_the_failure_are_not_counted() {
        let times = [0, 50, 60, 70, 95, 100];
        for (from, expected) in [(0, 50), (50, 25), (60, 25), (94, 25), (95, 5), (100, 0)] {
            assert_eq!(longest_gap(&times, from), expected, "from {from}");
        }
    }

    #[test]
    fn only_tags_missing_between_the_first_and_last_received_tag_are_lost() {
        for (tags, expected) in [(&[][..], 0), (&[3, 4, 4], 0), (&[1, 5, 3], 2)] {
            let arrivals: Vec<(u64, u64)> = tags.iter().map(|tag| (9, *tag)).collect();
            assert_eq!(lost(&arrivals), expected, "{tags:?}");
        }
    }
}
