//! Programs (eBPF) that put frames into a VLAN and take them out again, for the kernel's traffic control.
//!
//! They do what a VLAN interface does, and no more: a kernel that lacks those has these. `cls_bpf` runs them in its
//! direct-action mode, where the answer is the frame's fate.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{Error, Result};
use crate::system;

/// A program that the kernel has loaded; it stays as long as this or a filter holds it.
#[derive(Debug)]
pub struct VlanProgram(OwnedFd);

/// `ETH_P_8021Q`, as the kernel has it in memory.
const VLAN_PROTOCOL: u16 = 0x8100_u16.to_be();
/// Behind the priority bits.
const VLAN_ID: i32 = 0x0fff;
/// Offsets in `struct __sk_buff`.
const VLAN_PRESENT: i16 = 20;
const VLAN_TCI: i16 = 24;
/// `bpf_skb_vlan_push`, `bpf_skb_vlan_pop`.
const PUSH: i32 = 18;
const POP: i32 = 19;
/// `TC_ACT_OK`, `TC_ACT_SHOT`.
const PASS: i32 = 0;
const DROP: i32 = 2;

impl VlanProgram {
    /// Every frame gets the tag.
    ///
    /// # Errors
    /// [`Error::Invalid`] when that is no VLAN; [`Error::Privilege`] and [`Error::Io`] when the kernel does not take
    /// programs, or not from this user.
    pub fn push(vlan: u16) -> Result<VlanProgram> {
        let id = checked(vlan)?;
        load(&[
            set(2, i32::from(VLAN_PROTOCOL)),
            set(3, id),
            call(PUSH),
            // A frame that cannot be tagged must not go without.
            unless_equal(0, 0, 2),
            set(0, PASS),
            EXIT,
            set(0, DROP),
            EXIT,
        ])
    }

    /// Frames with that tag lose it; others are dropped, as they are for somebody else.
    ///
    /// # Errors
    /// As [`VlanProgram::push`].
    pub fn pop(vlan: u16) -> Result<VlanProgram> {
        let id = checked(vlan)?;
        load(&[
            load_word(2, VLAN_PRESENT),
            if_equal(2, 0, 7),
            load_word(2, VLAN_TCI),
            and(2, VLAN_ID),
            unless_equal(2, id, 4),
            call(POP),
            unless_equal(0, 0, 2),
            set(0, PASS),
            EXIT,
            set(0, DROP),
            EXIT,
        ])
    }
}

impl AsFd for VlanProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn checked(vlan: u16) -> Result<i32> {
    match vlan {
        1..=4094 => Ok(i32::from(vlan)),
        _ => Err(Error::Invalid(format!("VLAN {vlan}: a VLAN id is one of 1 to 4094"))),
    }
}

fn load(instructions: &[u64]) -> Result<VlanProgram> {
    system::load_traffic_program(instructions)
        .map(VlanProgram)
        .map_err(|error| Error::system("load a program for traffic control (eBPF)", error))
}

const EXIT: u64 = instruction(0x95, 0, 0, 0, 0);

/// Register 1 is the frame when a program begins, and the first argument of each call.
const FRAME: u8 = 1;

fn set(register: u8, value: i32) -> u64 {
    instruction(0xb7, register, 0, 0, value)
}

fn and(register: u8, value: i32) -> u64 {
    instruction(0x57, register, 0, 0, value)
}

fn load_word(register: u8, offset: i16) -> u64 {
    instruction(0x61, register, FRAME, offset, 0)
}

fn if_equal(register: u8, value: i32, skip: i16) -> u64 {
    instruction(0x15, register, 0, skip, value)
}

fn unless_equal(register: u8, value: i32, skip: i16) -> u64 {
    instruction(0x55, register, 0, skip, value)
}

fn call(function: i32) -> u64 {
    instruction(0x85, 0, 0, 0, function)
}

/// `struct bpf_insn`; the two registers share a byte.
const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    let [o0, o1] = offset.to_ne_bytes();
    let [v0, v1, v2, v3] = value.to_ne_bytes();
    u64::from_ne_bytes([code, registers, o0, o1, v0, v1, v2, v3])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `struct bpf_insn` lies in memory.
    #[test]
    #[cfg(target_endian = "little")]
    fn bpf_instructions_have_the_expected_bytes() {
        for (made, bytes) in [
            (and(2, VLAN_ID), [0x57, 2, 0, 0, 0xff, 0x0f, 0, 0]),
            (unless_equal(2, 7, 3), [0x55, 2, 3, 0, 7, 0, 0, 0]),
            (load_word(0, VLAN_TCI), [0x61, 0x10, 24, 0, 0, 0, 0, 0]),
            (call(PUSH), [0x85, 0, 0, 0, 18, 0, 0, 0]),
            (EXIT, [0x95, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(made.to_ne_bytes(), bytes);
        }
    }

    #[test]
    fn vlan_ids_outside_1_to_4094_are_refused() {
        for vlan in [0, 4095, u16::MAX] {
            let refused = VlanProgram::push(vlan).and(VlanProgram::pop(vlan)).unwrap_err();
            assert!(refused.to_string().contains("1 to 4094"), "{refused}");
        }
    }
}
