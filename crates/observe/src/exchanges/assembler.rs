//! A small assembler for eBPF (RFC 9669): instructions with named places to jump to.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::bpf::Instruction;

/// Registers: R0 holds results, R1 to R5 arguments. R6 to R9 survive calls. The last is the stack pointer.
pub(super) const R0: u8 = 0;
pub(super) const R1: u8 = 1;
pub(super) const R2: u8 = 2;
pub(super) const R3: u8 = 3;
pub(super) const R4: u8 = 4;
pub(super) const R6: u8 = 6;
pub(super) const R7: u8 = 7;
pub(super) const R8: u8 = 8;
pub(super) const R9: u8 = 9;
pub(super) const STACK: u8 = 10;

/// The kernel's helper functions (bpf-helpers(7)).
#[derive(Debug, Clone, Copy)]
pub(super) enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    Now = 5,
    ProcessAndThread = 14,
    ReadKernel = 113,
}

/// Conditions of a jump, on 64 bits.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    Equal = 0x10,
    NotEqual = 0x50,
    Above = 0x20,
    AtMost = 0xb0,
    SignedAtMost = 0xd0,
}

/// Operations on a register.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    ShiftRightSigned = 0xc0,
}

/// A program under construction.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<Instruction>,
    places: HashMap<String, usize>,
    /// Instructions that jump, with their targets.
    jumps: Vec<(usize, String)>,
    /// Number of the next place without a name.
    next: usize,
}

impl Assembler {
    fn emit(&mut self, code: u8, destination: u8, source: u8, offset: i16, immediate: i32) {
        self.code.push(Instruction::new(code, destination, source, offset, immediate));
    }

    pub(super) fn set(&mut self, register: u8, value: i32) {
        self.emit(0xb7, register, 0, 0, value);
    }

    pub(super) fn copy(&mut self, to: u8, from: u8) {
        self.emit(0xbf, to, from, 0, 0);
    }

    pub(super) fn compute(&mut self, operation: Operation, register: u8, by: i32) {
        self.emit(0x07 | operation as u8, register, 0, 0, by);
    }

    pub(super) fn compute_with(&mut self, operation: Operation, register: u8, by: u8) {
        self.emit(0x0f | operation as u8, register, by, 0, 0);
    }

    pub(super) fn load_u64(&mut self, to: u8, from: u8, offset: i16) {
        self.emit(0x79, to, from, offset, 0);
    }

    pub(super) fn load_u16(&mut self, to: u8, from: u8, offset: i16) {
        self.emit(0x69, to, from, offset, 0);
    }

    pub(super) fn store_u64(&mut self, to: u8, offset: i16, from: u8) {
        self.emit(0x7b, to, from, offset, 0);
    }

    pub(super) fn store_u32(&mut self, to: u8, offset: i16, from: u8) {
        self.emit(0x63, to, from, offset, 0);
    }

    pub(super) fn call(&mut self, helper: Helper) {
        self.emit(0x85, 0, 0, 0, helper as i32);
    }

    /// Sets an argument to an address on the stack.
    pub(super) fn point(&mut self, register: u8, offset: i16) {
        self.copy(register, STACK);
        self.compute(Operation::Add, register, offset.into());
    }

    /// Leaves the address of the value for the key at this place of the stack in `R0`; zero if the map lacks the key.
    pub(super) fn look_up(&mut self, map: BorrowedFd<'_>, key: i16) {
        self.map(R1, map);
        self.point(R2, key);
        self.call(Helper::MapLookup);
    }

    /// Sets an argument to a map: one instruction of double length.
    pub(super) fn map(&mut self, register: u8, map: BorrowedFd<'_>) {
        const IS_DESCRIPTOR: u8 = 1;
        self.emit(0x18, register, IS_DESCRIPTOR, 0, map.as_raw_fd());
        self.emit(0, 0, 0, 0, 0);
    }

    /// A name for a place that no other place has.
    pub(super) fn fresh(&mut self, name: &str) -> String {
        self.next += 1;
        format!("{name} {}", self.next)
    }

    pub(super) fn place(&mut self, name: &str) {
        let former = self.places.insert(name.to_owned(), self.code.len());
        assert!(former.is_none(), "two places have the name {name}");
    }

    pub(super) fn jump(&mut self, to: &str) {
        self.jumps.push((self.code.len(), to.to_owned()));
        self.emit(0x05, 0, 0, 0, 0);
    }

    pub(super) fn jump_if(&mut self, when: When, register: u8, value: i32, to: &str) {
        self.jumps.push((self.code.len(), to.to_owned()));
        self.emit(0x05 | when as u8, register, 0, 0, value);
    }

    pub(super) fn jump_if_than(&mut self, when: When, register: u8, other: u8, to: &str) {
        self.jumps.push((self.code.len(), to.to_owned()));
        self.emit(0x0d | when as u8, register, other, 0, 0);
    }

    /// Ends the program at the place `end`, and resolves the jumps.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        self.place("end");
        self.set(R0, 0);
        self.emit(0x95, 0, 0, 0, 0);
        for (at, name) in &self.jumps {
            let target = self.places.get(name).unwrap_or_else(|| panic!("no place has the name {name}"));
            self.code[*at].offset = (*target as i64 - *at as i64 - 1) as i16;
        }
        self.code
    }
}
