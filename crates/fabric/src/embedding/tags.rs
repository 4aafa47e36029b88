//! Which tags are in use on which link.

use super::map::Tag;
use crate::units::PortId;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Tags in use, by the port that sends them: that is one direction of a wire, by a name that survives a restart.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    least: u16,
    most: u16,
    used: BTreeMap<PortId, Box<[u64; 64]>>,
    /// Where the next search begins. Going round leaves a tag alone for as long as can be after it was given up:
    /// packets that bear it may still be on the way, and must not arrive in another tenant's network.
    next: u16,
}

impl Tags {
    pub(super) fn new(least: Tag, most: Tag) -> Tags {
        let (least, most) = (least.min(most).get(), least.max(most).get());
        Tags { least, most, used: BTreeMap::new(), next: least }
    }

    /// Takes a tag on each link, of these sending ports: the same on all if one is free everywhere, first of all
    /// `liked`. The error is a port where none is free; then nothing is taken.
    pub(super) fn take(
        &mut self,
        ports: &[PortId],
        liked: Option<Tag>,
    ) -> Result<Vec<Tag>, PortId> {
        let liked = liked.map(Tag::get).filter(|&tag| self.free_on_all(ports, tag));
        let same = liked.or_else(|| self.in_turn().find(|&tag| self.free_on_all(ports, tag)));
        let mut found = Vec::with_capacity(ports.len());
        for &port in ports {
            let free = || self.in_turn().find(|&tag| !self.is_used(port, tag));
            found.push(same.or_else(free).ok_or(port)?);
        }
        let last = found.iter().copied().max().unwrap_or(self.next);
        self.next = if last >= self.most { self.least } else { last + 1 };
        let taken: Vec<Tag> = found.iter().filter_map(|&tag| Tag::new(tag).ok()).collect();
        self.mark(ports, &taken);
        Ok(taken)
    }

    /// Takes exactly these, if they are of the range and free.
    pub(super) fn retake(&mut self, ports: &[PortId], tags: &[Tag]) -> bool {
        let range = self.least..=self.most;
        let is_free = |(&port, tag): (&PortId, &Tag)| {
            range.contains(&tag.get()) && !self.is_used(port, tag.get())
        };
        let all = ports.len() == tags.len() && ports.iter().zip(tags).all(is_free);
        if all {
            self.mark(ports, tags);
        }
        all
    }

    /// Gives tags up.
    pub(super) fn give_up(&mut self, ports: &[PortId], tags: &[Tag]) {
        for (&port, tag) in ports.iter().zip(tags) {
            let Some(words) = self.used.get_mut(&port) else { continue };
            words[usize::from(tag.get() / 64)] &= !(1 << (tag.get() % 64));
            if words.iter().all(|&word| word == 0) {
                self.used.remove(&port);
            }
        }
    }

    pub(super) fn range(&self) -> [Tag; 2] {
        // They were tags when they came.
        [self.least, self.most].map(|tag| Tag::new(tag).unwrap_or(Tag::MOST))
    }

    pub(super) const fn next(&self) -> u16 {
        self.next
    }

    pub(super) fn set_next(&mut self, next: u16) {
        self.next = next.clamp(self.least, self.most);
    }

    /// How many are in use, over all links.
    pub(super) fn count(&self) -> usize {
        let words = self.used.values().flat_map(|words| words.iter());
        words.map(|word| word.count_ones() as usize).sum()
    }

    /// How many are free at a port.
    pub(super) fn free(&self, port: PortId) -> usize {
        let used = self.used.get(&port).into_iter().flat_map(|words| words.iter());
        let used: usize = used.map(|word| word.count_ones() as usize).sum();
        usize::from(self.most - self.least + 1).saturating_sub(used)
    }

    fn mark(&mut self, ports: &[PortId], tags: &[Tag]) {
        for (&port, tag) in ports.iter().zip(tags) {
            let words = self.used.entry(port).or_insert_with(|| Box::new([0; 64]));
            words[usize::from(tag.get() / 64)] |= 1 << (tag.get() % 64);
        }
    }

    fn in_turn(&self) -> impl Iterator<Item = u16> + use<> {
        (self.next..=self.most).chain(self.least..self.next)
    }

    fn free_on_all(&self, ports: &[PortId], tag: u16) -> bool {
        ports.iter().all(|&port| !self.is_used(port, tag))
    }

    fn is_used(&self, port: PortId, tag: u16) -> bool {
        let words = self.used.get(&port);
        words.is_some_and(|words| words[usize::from(tag / 64)] >> (tag % 64) & 1 == 1)
    }
}
