//! The thread's spare buffers, by size class (powers of two from 4 KiB up).

use std::cell::RefCell;

/// The smallest buffer; one page.
pub(crate) const SMALLEST: usize = 4 << 10;
/// Size classes: 4 KiB, 8 KiB, … 1 MiB. Larger buffers are not kept.
const CLASSES: usize = 9;
/// Spare bytes kept per thread and kind of buffer. Enough for the bursts of one loop's turn.
const KEEP: usize = 4 << 20;

struct Spare<B> {
    classes: [Vec<B>; CLASSES],
    bytes: usize,
}

impl<B> Spare<B> {
    const fn new() -> Self {
        Spare { classes: [const { Vec::new() }; CLASSES], bytes: 0 }
    }

    fn take(&mut self, class: usize) -> Option<B> {
        let buffer = self.classes.get_mut(class)?.pop()?;
        self.bytes -= SMALLEST << class;
        Some(buffer)
    }

    fn take_at_least(&mut self, class: usize) -> Option<B> {
        (class..CLASSES).find_map(|class| self.take(class))
    }

    fn give(&mut self, class: usize, buffer: B) {
        let size = SMALLEST << class;
        if self.bytes + size <= KEEP
            && let Some(list) = self.classes.get_mut(class)
        {
            self.bytes += size;
            list.push(buffer);
        }
    }
}

thread_local! {
    static BLOCKS: RefCell<Spare<Box<[u8]>>> = const { RefCell::new(Spare::new()) };
    static VECS: RefCell<Spare<Vec<u8>>> = const { RefCell::new(Spare::new()) };
}

/// The size of the block that [`take_block`] gives for `need` bytes.
pub(crate) fn block_size(need: usize) -> usize {
    SMALLEST << class_above(need)
}

/// A block of [`block_size`]`(need)` bytes, whose content is whatever its last user left.
pub(crate) fn take_block(need: usize) -> Box<[u8]> {
    let class = class_above(need);
    let spare = BLOCKS.try_with(|spare| spare.borrow_mut().take(class)).ok().flatten();
    spare.unwrap_or_else(|| vec![0; SMALLEST << class].into_boxed_slice())
}

/// Returns a block that [`take_block`] gave.
pub(crate) fn give_block(block: Box<[u8]>) {
    if block.len() >= SMALLEST {
        // While the thread ends, the pool may be gone before the last connection: then just free.
        let _ = BLOCKS.try_with(|spare| spare.borrow_mut().give(class_above(block.len()), block));
    }
}

/// An empty vector with room for `need` bytes, or for as many more as a spare one happens to have:
/// it may grow, and then growth is saved that was paid for already.
pub(crate) fn take_vec(need: usize) -> Vec<u8> {
    let class = class_above(need);
    let spare = VECS.try_with(|spare| spare.borrow_mut().take_at_least(class)).ok().flatten();
    spare.unwrap_or_else(|| Vec::with_capacity(SMALLEST << class))
}

/// An empty vector of [`block_size`]`(need)` bytes, to keep for long.
pub(crate) fn take_small_vec(need: usize) -> Vec<u8> {
    let class = class_above(need);
    let spare = VECS.try_with(|spare| spare.borrow_mut().take(class)).ok().flatten();
    spare.unwrap_or_else(|| Vec::with_capacity(SMALLEST << class))
}

/// Returns a vector, which may have grown since [`take_vec`].
pub(crate) fn give_vec(mut vec: Vec<u8>) {
    if vec.capacity() >= SMALLEST {
        vec.clear();
        let _ = VECS.try_with(|spare| spare.borrow_mut().give(class_below(vec.capacity()), vec));
    }
}

/// The class whose buffers hold at least `need` bytes.
fn class_above(need: usize) -> usize {
    need.div_ceil(SMALLEST).max(1).next_power_of_two().trailing_zeros() as usize
}

/// The largest class that a buffer of `capacity` (at least `SMALLEST`) bytes can serve.
fn class_below(capacity: usize) -> usize {
    (capacity / SMALLEST).max(1).ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_buffers_are_at_least_as_large_as_requested() {
        for need in [0, 1, SMALLEST - 1, SMALLEST, SMALLEST + 1, 65_535, 65_536, 300_000, 3 << 20] {
            assert!(block_size(need) >= need, "{need}");
            assert_eq!(take_block(need).len(), block_size(need), "{need}");
            assert!(take_vec(need).capacity() >= need, "{need}");
        }
        assert_eq!(class_below(2 * SMALLEST - 1), 0);
        assert_eq!(class_below(2 * SMALLEST), 1);
    }

    #[test]
    fn a_returned_buffer_is_used_again() {
        let mut block = take_block(SMALLEST);
        block[7] = 42;
        let place = block.as_ptr();
        give_block(block);
        let again = take_block(1);
        assert_eq!(again.as_ptr(), place);
        assert_eq!(again[7], 42);
    }

    #[test]
    fn memory_of_unused_buffers_is_bounded() {
        for _ in 0..3 * KEEP / (64 << 10) {
            give_block(vec![0; 64 << 10].into_boxed_slice());
            give_vec(Vec::with_capacity(64 << 10));
        }
        assert!(BLOCKS.with(|s| s.borrow().bytes) <= KEEP);
        assert!(VECS.with(|s| s.borrow().bytes) <= KEEP);
    }
}
