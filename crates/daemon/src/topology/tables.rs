//! One tenant's flow entries on one switch, indexed by the packets that they match.

use std::collections::HashMap;

use flowspace::{Field, Match};
use hypervisor::FlowEntry;

/// The entries, by number and by their most distinctive fields.
#[derive(Default)]
pub(super) struct Tables {
    entries: HashMap<u32, FlowEntry>,
    buckets: HashMap<Bucket, Vec<u32>>,
    /// The number of entries that IP addresses distinguish.
    by_address: usize,
}

/// The fields of the index; each entry is in one bucket.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Bucket {
    /// IP source and destination as numbers, for IPv4 and IPv6 together: an IPv4 and an IPv6 address with the same
    /// number only cost one more comparison.
    Addresses(u128, u128),
    /// IP destination alone.
    Address(u128),
    /// Ethernet source and destination.
    Stations(u128, u128),
    /// Ethernet destination alone.
    Station(u128),
    Others,
}

impl Bucket {
    fn of(match_: &Match) -> Bucket {
        let exact = |field| match_.exact_value(field);
        let (from, to) = addresses(match_);
        match (from, to, exact(Field::DlSrc), exact(Field::DlDst)) {
            (Some(from), Some(to), ..) => Bucket::Addresses(from, to),
            (None, Some(to), ..) => Bucket::Address(to),
            (_, None, Some(from), Some(to)) => Bucket::Stations(from, to),
            (_, None, None, Some(to)) => Bucket::Station(to),
            _ => Bucket::Others,
        }
    }

    fn is_by_address(self) -> bool {
        matches!(self, Bucket::Addresses(..) | Bucket::Address(_))
    }
}

impl Tables {
    /// Sets or removes an entry; returns the old entry.
    pub(super) fn set(&mut self, number: u32, entry: Option<FlowEntry>) -> Option<FlowEntry> {
        let before = self.entries.remove(&number);
        if let Some(before) = &before {
            let bucket = Bucket::of(&before.match_);
            self.by_address -= usize::from(bucket.is_by_address());
            if let Some(numbers) = self.buckets.get_mut(&bucket) {
                numbers.retain(|other| *other != number);
                if numbers.is_empty() {
                    self.buckets.remove(&bucket);
                }
            }
        }
        if let Some(entry) = entry {
            let bucket = Bucket::of(&entry.match_);
            self.by_address += usize::from(bucket.is_by_address());
            self.buckets.entry(bucket).or_default().push(number);
            self.entries.insert(number, entry);
        }
        before
    }

    /// All entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = &FlowEntry> {
        self.entries.values()
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries of a table that match any of these packets, which have one Ethernet source and destination, with
    /// their numbers; the entry with the highest precedence first.
    pub(super) fn taking(&self, table: u8, packets: &Match) -> Vec<(u32, &FlowEntry)> {
        let exact = |field| packets.exact_value(field);
        let (from, to) = addresses(packets);
        let stations = exact(Field::DlSrc).zip(exact(Field::DlDst));
        let mut found: Vec<(u32, &FlowEntry)> = match (from, to, stations) {
            (Some(from), Some(to), Some((source, target))) => {
                let buckets = [
                    Bucket::Addresses(from, to),
                    Bucket::Address(to),
                    Bucket::Stations(source, target),
                    Bucket::Station(target),
                    Bucket::Others,
                ];
                self.of_buckets(&buckets)
            }
            (_, _, Some((source, target))) if self.by_address == 0 => self.of_buckets(&[
                Bucket::Stations(source, target),
                Bucket::Station(target),
                Bucket::Others,
            ]),
            // The packets exclude no entry.
            _ => self.entries.iter().map(|(number, entry)| (*number, entry)).collect(),
        };
        found.retain(|(_, entry)| entry.table == table && entry.match_.overlaps(packets));
        found.sort_by_key(|(number, entry)| (std::cmp::Reverse(entry.priority), *number));
        found
    }

    fn of_buckets(&self, buckets: &[Bucket]) -> Vec<(u32, &FlowEntry)> {
        let numbers = buckets.iter().filter_map(|bucket| self.buckets.get(bucket)).flatten();
        numbers.filter_map(|number| Some((*number, self.entries.get(number)?))).collect()
    }
}

/// The IP source and destination, if they are exact.
fn addresses(match_: &Match) -> (Option<u128>, Option<u128>) {
    let exact = |v4, v6| match_.exact_value(v4).or_else(|| match_.exact_value(v6));
    (exact(Field::NwSrc, Field::Ipv6Src), exact(Field::NwDst, Field::Ipv6Dst))
}
