//! Timers by key, as pure data: the caller says what time it is.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;
use std::time::Instant;

/// At most one deadline per key; setting it again moves it.
///
/// A deadline that is moved later (as a keepalive's is, with each message) costs no work in the
/// heap: the old entry stays, and is put off when it comes up.
#[derive(Debug)]
pub struct Timers<K> {
    deadlines: HashMap<K, Instant>,
    /// Each key with a deadline has at least one entry at or before it.
    heap: BinaryHeap<Reverse<(Instant, K)>>,
}

impl<K: Copy + Eq + Hash + Ord> Timers<K> {
    /// No timers.
    pub fn new() -> Self {
        Timers { deadlines: HashMap::new(), heap: BinaryHeap::new() }
    }

    /// Sets the deadline of `key`.
    pub fn set(&mut self, key: K, at: Instant) {
        let before = self.deadlines.insert(key, at);
        if before.is_none_or(|before| at < before) {
            if self.heap.len() > 2 * self.deadlines.len() + 64 {
                self.rebuild();
            } else {
                self.heap.push(Reverse((at, key)));
            }
        }
    }

    /// Forgets the deadline of `key`.
    pub fn cancel(&mut self, key: K) {
        self.deadlines.remove(&key);
    }

    /// When to call [`expired`](Self::expired) next. It may be early (after a deadline moved),
    /// never late.
    pub fn next(&self) -> Option<Instant> {
        match self.deadlines.is_empty() {
            true => None,
            false => self.heap.peek().map(|Reverse((at, _))| *at),
        }
    }

    /// Takes one key whose deadline is at or before `now`; call until `None`.
    pub fn expired(&mut self, now: Instant) -> Option<K> {
        while let Some(&Reverse((at, key))) = self.heap.peek() {
            if at > now {
                break;
            }
            self.heap.pop();
            match self.deadlines.get(&key) {
                Some(&deadline) if deadline <= now => {
                    self.deadlines.remove(&key);
                    return Some(key);
                }
                Some(&deadline) => self.heap.push(Reverse((deadline, key))),
                None => {}
            }
        }
        None
    }

    /// Drops the entries whose deadlines no longer apply.
    fn rebuild(&mut self) {
        self.heap = self.deadlines.iter().map(|(&key, &at)| Reverse((at, key))).collect();
    }
}

impl<K: Copy + Eq + Hash + Ord> Default for Timers<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn all(timers: &mut Timers<u32>, now: Instant) -> Vec<u32> {
        std::iter::from_fn(|| timers.expired(now)).collect()
    }

    #[test]
    fn timers_expire_in_order_after_moves_and_cancellations() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::new();
        timers.set(1, at(30));
        timers.set(2, at(10));
        timers.set(3, at(20));
        timers.set(1, at(5));
        timers.set(2, at(40));
        timers.cancel(3);
        assert_eq!(timers.next(), Some(at(5)));
        assert_eq!(all(&mut timers, at(4)), []);
        assert_eq!(all(&mut timers, at(5)), [1]);
        assert_eq!(all(&mut timers, at(39)), []);
        assert_eq!(all(&mut timers, at(40)), [2]);
        assert_eq!((timers.next(), timers.deadlines.len()), (None, 0));
    }

    /// Deadlines that are moved earlier again and again leave entries behind, but not without end.
    #[test]
    fn moving_timers_earlier_many_times_keeps_the_heap_bounded() {
        let start = Instant::now();
        let mut timers = Timers::new();
        for step in 0..10_000_u64 {
            timers.set((step % 10) as u32, start + Duration::from_secs(20_000 - step));
            assert!(timers.heap.len() <= 2 * 10 + 65, "{} entries", timers.heap.len());
        }
        assert_eq!(timers.next(), Some(start + Duration::from_secs(10_001)));
        assert_eq!(all(&mut timers, start + Duration::from_secs(20_000)).len(), 10);
    }

    /// Against a plain map, over many random moves; the heap must stay in proportion.
    #[test]
    fn random_timers_expire_as_in_a_linear_scan() {
        let start = Instant::now();
        let mut timers = Timers::new();
        let mut model: HashMap<u32, u64> = HashMap::new();
        let mut state = 1_u64;
        for step in 0..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (key, delay) = ((state >> 33) as u32 % 50, (state >> 40) % 200);
            if state >> 60 == 0 {
                timers.cancel(key);
                model.remove(&key);
            } else {
                timers.set(key, start + Duration::from_millis(step + delay));
                model.insert(key, step + delay);
            }
            let mut fired = all(&mut timers, start + Duration::from_millis(step));
            fired.sort();
            let mut due: Vec<u32> =
                model.iter().filter(|(_, at)| **at <= step).map(|(key, _)| *key).collect();
            due.sort();
            assert_eq!(fired, due);
            model.retain(|_, at| *at > step);
            assert!(timers.heap.len() <= 2 * 50 + 66);
        }
    }
}
