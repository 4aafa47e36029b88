//! Many short lists in one store. Most rules have no message in flight, so an empty list takes only two numbers.

use super::growing::ChunkedVec;

/// One list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    first: u32,
    last: u32,
}

/// All lists.
#[derive(Debug)]
pub(super) struct Chains<T> {
    nodes: ChunkedVec<Node<T>>,
    free: u32,
}

#[derive(Debug)]
struct Node<T> {
    item: Option<T>,
    next: u32,
}

const NONE: u32 = u32::MAX;

impl Chain {
    pub(super) const EMPTY: Chain = Chain { first: NONE, last: NONE };

    pub(super) fn is_empty(self) -> bool {
        self.first == NONE
    }
}

impl<T> Chains<T> {
    pub(super) fn new() -> Chains<T> {
        Chains { nodes: ChunkedVec::new(), free: NONE }
    }

    pub(super) fn iter(&self, chain: Chain) -> impl Iterator<Item = &T> {
        let mut at = chain.first;
        core::iter::from_fn(move || {
            let node = self.nodes.get(at)?;
            at = node.next;
            node.item.as_ref()
        })
    }

    pub(super) fn last(&self, chain: Chain) -> Option<&T> {
        self.nodes.get(chain.last)?.item.as_ref()
    }

    pub(super) fn push(&mut self, chain: &mut Chain, item: T) {
        self.insert(chain, chain.last, item);
    }

    /// Inserts an item before the first item for which `is_behind` says yes, or at the end.
    pub(super) fn push_before(
        &mut self,
        chain: &mut Chain,
        is_behind: impl Fn(&T) -> bool,
        item: T,
    ) {
        let mut previous = NONE;
        let mut at = chain.first;
        while let Some(node) = self.nodes.get(at)
            && !node.item.as_ref().is_some_and(&is_behind)
        {
            (previous, at) = (at, node.next);
        }
        self.insert(chain, previous, item);
    }

    /// Removes the first item for which `is_it` says yes.
    pub(super) fn remove(&mut self, chain: &mut Chain, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let mut previous = NONE;
        let mut at = chain.first;
        while !self.nodes.get(at)?.item.as_ref().is_some_and(&is_it) {
            (previous, at) = (at, self.nodes.get(at)?.next);
        }
        self.unlink(chain, previous)
    }

    fn insert(&mut self, chain: &mut Chain, behind: u32, item: T) {
        let next = match self.nodes.get(behind) {
            Some(previous) => previous.next,
            None => chain.first,
        };
        let node = Node { item: Some(item), next };
        let at = self.free;
        let at = match self.nodes.get_mut(at) {
            Some(place) => {
                self.free = place.next;
                *place = node;
                at
            }
            None => self.nodes.push(node),
        };
        match self.nodes.get_mut(behind) {
            Some(previous) => previous.next = at,
            None => chain.first = at,
        }
        if next == NONE {
            chain.last = at;
        }
    }

    /// Removes the node after `previous`, or the first node.
    fn unlink(&mut self, chain: &mut Chain, previous: u32) -> Option<T> {
        let at = match self.nodes.get(previous) {
            Some(previous) => previous.next,
            None => chain.first,
        };
        let free = self.free;
        let node = self.nodes.get_mut(at)?;
        let (item, next) = (node.item.take(), node.next);
        node.next = free;
        self.free = at;
        match self.nodes.get_mut(previous) {
            Some(previous) => previous.next = next,
            None => chain.first = next,
        }
        if next == NONE {
            chain.last = previous;
        }
        item
    }
}
