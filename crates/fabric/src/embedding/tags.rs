//! The tags in use on each link.

use super::map::Tag;
use crate::units::PortId;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// The number of last released tags of a link that are taken after all others.
const RESTING: usize = 64;

/// Tags in use, by the sending port. A port names one direction of a wire, and survives a restart.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    least: u16,
    most: u16,
    used: BTreeMap<PortId, Box<[u64; 64]>>,
    /// The start of the next search. Taking tags in turn leaves a released tag unused as long as possible: packets with
    /// this tag may still be on the way, and must not arrive in another tenant's network.
    next: u16,
    /// The tags that were released last, in order. They are taken when no others are free, wherever the search starts.
    resting: BTreeMap<PortId, VecDeque<u16>>,
}

impl Tags {
    pub(super) fn new(least: Tag, most: Tag) -> Tags {
        let (least, most) = (least.min(most).get(), least.max(most).get());
        Tags { least, most, used: BTreeMap::new(), next: least, resting: BTreeMap::new() }
    }

    /// Takes a tag on the link of each of these sending ports: the same tag on all links if one is free everywhere, and
    /// first of all `liked`. The error is a port without a free tag; then no tag is taken.
    pub(super) fn take(
        &mut self,
        ports: &[PortId],
        liked: Option<Tag>,
    ) -> Result<Vec<Tag>, PortId> {
        let liked = liked.map(Tag::get);
        let rested = |port, tag| self.is_free(port, tag) && !self.is_resting(port, tag);
        let found = self.find(ports, liked, rested);
        let found =
            found.or_else(|_| self.find(ports, liked, |port, tag| self.is_free(port, tag)))?;
        let last = found.iter().copied().max().unwrap_or(self.next);
        self.next = if last >= self.most { self.least } else { last + 1 };
        let taken: Vec<Tag> = found.iter().filter_map(|&tag| Tag::new(tag).ok()).collect();
        self.mark(ports, &taken);
        Ok(taken)
    }

    fn find(
        &self,
        ports: &[PortId],
        liked: Option<u16>,
        is_free: impl Fn(PortId, u16) -> bool,
    ) -> Result<Vec<u16>, PortId> {
        let on_all = |tag: &u16| ports.iter().all(|&port| is_free(port, *tag));
        let same = liked.filter(on_all).or_else(|| self.in_turn().find(on_all));
        let on = |&port: &PortId| {
            same.or_else(|| self.in_turn().find(|&tag| is_free(port, tag))).ok_or(port)
        };
        ports.iter().map(on).collect()
    }

    /// Takes exactly these tags, if they are in the range and free.
    pub(super) fn retake(&mut self, ports: &[PortId], tags: &[Tag]) -> bool {
        let range = self.least..=self.most;
        let is_free = |(&port, tag): (&PortId, &Tag)| {
            range.contains(&tag.get()) && self.is_free(port, tag.get())
        };
        let all = ports.len() == tags.len() && ports.iter().zip(tags).all(is_free);
        if all {
            self.mark(ports, tags);
        }
        all
    }

    /// Releases tags.
    pub(super) fn give_up(&mut self, ports: &[PortId], tags: &[Tag]) {
        for (&port, tag) in ports.iter().zip(tags) {
            let Some(words) = self.used.get_mut(&port) else { continue };
            words[usize::from(tag.get() / 64)] &= !(1 << (tag.get() % 64));
            if words.iter().all(|&word| word == 0) {
                self.used.remove(&port);
            }
            self.rest(port, *tag);
        }
    }

    /// Notes that a tag at a port was released: other tags are taken first.
    pub(super) fn rest(&mut self, port: PortId, tag: Tag) {
        let resting = self.resting.entry(port).or_default();
        resting.retain(|it| *it != tag.get());
        resting.push_back(tag.get());
        if resting.len() > RESTING {
            resting.pop_front();
        }
    }

    /// The tags that were released last, by port, in order.
    pub(super) fn resting(&self) -> BTreeMap<PortId, Vec<Tag>> {
        let tags = |tags: &VecDeque<u16>| tags.iter().filter_map(|&it| Tag::new(it).ok()).collect();
        self.resting.iter().map(|(&port, resting)| (port, tags(resting))).collect()
    }

    pub(super) fn range(&self) -> [Tag; 2] {
        // Both numbers come from valid tags.
        [self.least, self.most].map(|tag| Tag::new(tag).unwrap_or(Tag::MOST))
    }

    pub(super) const fn next(&self) -> u16 {
        self.next
    }

    pub(super) fn set_next(&mut self, next: u16) {
        self.next = next.clamp(self.least, self.most);
    }

    /// The number of tags in use, over all links.
    pub(super) fn count(&self) -> usize {
        let words = self.used.values().flat_map(|words| words.iter());
        words.map(|word| word.count_ones() as usize).sum()
    }

    /// The number of free tags at a port.
    pub(super) fn free(&self, port: PortId) -> usize {
        let used = self.used.get(&port).into_iter().flat_map(|words| words.iter());
        let used: usize = used.map(|word| word.count_ones() as usize).sum();
        usize::from(self.most - self.least + 1).saturating_sub(used)
    }

    fn mark(&mut self, ports: &[PortId], tags: &[Tag]) {
        for (&port, tag) in ports.iter().zip(tags) {
            let words = self.used.entry(port).or_insert_with(|| Box::new([0; 64]));
            words[usize::from(tag.get() / 64)] |= 1 << (tag.get() % 64);
            if let Some(resting) = self.resting.get_mut(&port) {
                resting.retain(|it| *it != tag.get());
                if resting.is_empty() {
                    self.resting.remove(&port);
                }
            }
        }
    }

    fn in_turn(&self) -> impl Iterator<Item = u16> + use<> {
        (self.next..=self.most).chain(self.least..self.next)
    }

    fn is_resting(&self, port: PortId, tag: u16) -> bool {
        self.resting.get(&port).is_some_and(|resting| resting.contains(&tag))
    }

    fn is_free(&self, port: PortId, tag: u16) -> bool {
        let words = self.used.get(&port);
        words.is_none_or(|words| words[usize::from(tag / 64)] >> (tag % 64) & 1 == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Dpid, PortNumber};

    #[test]
    fn a_recently_released_tag_is_taken_last() {
        let tag = |number: u16| Tag::new(number).unwrap();
        let mut tags = Tags::new(tag(10), tag(14));
        let at = |it| PortId { dpid: Dpid(it), port: PortNumber::new(1).unwrap() };
        let ports = [at(1), at(2)];
        let taken: Vec<Tag> = (0..4).map(|_| tags.take(&ports, None).unwrap()[0]).collect();
        assert_eq!(taken, [10, 11, 12, 13].map(tag));
        tags.set_next(11);
        tags.give_up(&ports, &[tag(12), tag(12)]);
        // Without the rest, this tag would be the first.
        assert_eq!(tags.take(&ports, None), Ok(Vec::from([tag(14), tag(14)])));
        // On a link without other free tags, the released tag is taken.
        tags.give_up(&ports[1..], &[tag(10)]);
        tags.give_up(&ports[1..], &[tag(11)]);
        assert_eq!(tags.take(&ports, None), Ok(Vec::from([tag(12), tag(12)])));
        assert_eq!(tags.take(&ports, None), Err(ports[0]));
        assert_eq!(tags.take(&ports[1..], Some(tag(11))), Ok(Vec::from([tag(11)])));
    }
}
