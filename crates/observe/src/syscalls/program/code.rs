//! The two counting programs, instruction by instruction (RFC 9669, BPF instruction set).
//!
//! They are written by hand because they have only thirty instructions: a BPF compiler would be a dependency of every
//! build.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::bpf::Instruction;

/// Slots per side: one for each call number; the last slot counts all higher numbers.
pub(super) const SLOTS: u32 = 512;

/// The slot after those of both sides: counts processes that did not fit into the map.
pub(super) const MISSED: u32 = 2 * SLOTS;

/// The kernel's helper functions (bpf-helpers(7)).
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const PROCESS_AND_THREAD: i32 = 14;

/// Registers: R0 holds results, R1 to R4 arguments; the next two survive calls; the last is the stack pointer.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const KEPT: u8 = 6;
const SIDE: u8 = 7;
const STACK: u8 = 10;

/// Stack offsets of a key and of a value.
const KEY: i16 = -4;
const VALUE: i16 = -8;

const fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction::new(code, destination, source, offset, immediate)
}

const fn set(register: u8, immediate: i32) -> Instruction {
    instruction(0xb7, register, 0, 0, immediate)
}

const fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}

const fn add(to: u8, immediate: i32) -> Instruction {
    instruction(0x07, to, 0, 0, immediate)
}

const fn call(function: i32) -> Instruction {
    instruction(0x85, 0, 0, 0, function)
}

const fn load_u32(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x61, to, from, offset, 0)
}

const fn load_u64(to: u8, from: u8, offset: i16) -> Instruction {
    instruction(0x79, to, from, offset, 0)
}

const fn store_u32(offset: i16, from: u8) -> Instruction {
    instruction(0x63, STACK, from, offset, 0)
}

/// Skips `skipped` instructions if the register is zero.
const fn skip_if_zero(register: u8, skipped: i16) -> Instruction {
    instruction(0x15, register, 0, skipped, 0)
}

/// Loads a map as an argument: one instruction of double length.
fn map(register: u8, map: BorrowedFd<'_>) -> [Instruction; 2] {
    const IS_DESCRIPTOR: u8 = 1;
    [instruction(0x18, register, IS_DESCRIPTOR, 0, map.as_raw_fd()), instruction(0, 0, 0, 0, 0)]
}

/// Leaves the address of the value for the key on the stack in `R0`; zero if the map lacks the key.
fn look_up(in_map: BorrowedFd<'_>) -> Vec<Instruction> {
    let mut code = map(R1, in_map).to_vec();
    code.extend([copy(R2, STACK), add(R2, KEY as i32), call(MAP_LOOKUP)]);
    code
}

/// Leaves the address of the current process's side in `R0`; zero if it belongs to neither side.
fn side(trees: BorrowedFd<'_>) -> Vec<Instruction> {
    const SHIFT_RIGHT: u8 = 0x77;
    // The process id is in the upper half.
    let mut code = vec![call(PROCESS_AND_THREAD), instruction(SHIFT_RIGHT, R0, 0, 0, 32), store_u32(KEY, R0)];
    code.extend(look_up(trees));
    code
}

/// Adds one to the slot whose number is the key on the stack.
fn count(counts: BorrowedFd<'_>) -> Vec<Instruction> {
    const ADD_U64: u8 = 0xdb;
    let mut code = look_up(counts);
    code.extend([skip_if_zero(R0, 2), set(R1, 1), instruction(ADD_U64, R0, R1, 0, 0)]);
    code
}

/// Skips `rest` if `R0` is zero, then returns 0.
fn guarded(before: Vec<Instruction>, rest: Vec<Instruction>) -> Vec<Instruction> {
    let mut code = before;
    code.push(skip_if_zero(R0, rest.len() as i16));
    code.extend(rest);
    code.extend([set(R0, 0), instruction(0x95, 0, 0, 0, 0)]);
    code
}

/// The program at the raw tracepoint `sys_enter`: counts each call by side and number.
pub(super) fn sys_enter(trees: BorrowedFd<'_>, counts: BorrowedFd<'_>) -> Vec<Instruction> {
    const SKIP_IF_BELOW: u8 = 0xa5;
    const MULTIPLY: u8 = 0x27;
    const ADD: u8 = 0x0f;
    // The tracepoint's second argument is the call number.
    let mut before = vec![load_u64(KEPT, R1, 8)];
    before.extend(side(trees));
    let mut rest = vec![
        load_u32(SIDE, R0, 0),
        instruction(SKIP_IF_BELOW, KEPT, 0, 1, SLOTS as i32),
        set(KEPT, SLOTS as i32 - 1),
        instruction(MULTIPLY, SIDE, 0, 0, SLOTS as i32),
        instruction(ADD, SIDE, KEPT, 0, 0),
        store_u32(KEY, SIDE),
    ];
    rest.extend(count(counts));
    guarded(before, rest)
}

/// The program at the tracepoint `sched_process_fork`: adds the child to its parent's side. `child` is the offset of
/// the child's id in the record. Threads arrive here, too. Their ids in the map do no harm, because no process has the
/// id of a living thread.
pub(super) fn fork(child: i16, trees: BorrowedFd<'_>, counts: BorrowedFd<'_>) -> Vec<Instruction> {
    let mut before = vec![load_u32(KEPT, R1, child)];
    before.extend(side(trees));
    let mut rest = vec![load_u32(SIDE, R0, 0), store_u32(VALUE, SIDE), store_u32(KEY, KEPT)];
    rest.extend(map(R1, trees));
    rest.extend([copy(R2, STACK), add(R2, KEY as i32), copy(R3, STACK), add(R3, VALUE as i32), set(R4, 0)]);
    rest.push(call(MAP_UPDATE));
    let mut missed = vec![set(R1, MISSED as i32), store_u32(KEY, R1)];
    missed.extend(count(counts));
    rest.push(skip_if_zero(R0, missed.len() as i16));
    rest.extend(missed);
    guarded(before, rest)
}
