//! The two programs that count, instruction by instruction (RFC 9669, BPF instruction set).
//!
//! Written by hand because they are thirty instructions: a compiler for them would be a dependency that every build needs.

use std::os::fd::{AsRawFd, BorrowedFd};

/// One instruction, as the kernel of a little-endian machine reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u8,
    /// The destination in the lower half, the source in the upper.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The slots of a side: a call's number, and the last one for all numbers beyond.
pub(super) const SLOTS: u32 = 512;

/// The slot that counts processes which could not be followed, after those of both sides.
pub(super) const MISSED: u32 = 2 * SLOTS;

/// Functions that the kernel offers to programs (bpf-helpers(7)).
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const PROCESS_AND_THREAD: i32 = 14;

/// Registers: what functions return, their arguments, what they leave alone, and the stack.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const KEPT: u8 = 6;
const SIDE: u8 = 7;
const STACK: u8 = 10;

/// Where a key lies on the stack, and a value.
const KEY: i16 = -4;
const VALUE: i16 = -8;

const fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers: destination | source << 4, offset, immediate }
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

/// Skips so many instructions where the register is zero.
const fn skip_if_zero(register: u8, skipped: i16) -> Instruction {
    instruction(0x15, register, 0, skipped, 0)
}

/// A map as an argument: an instruction of double length.
fn map(register: u8, map: BorrowedFd<'_>) -> [Instruction; 2] {
    const IS_DESCRIPTOR: u8 = 1;
    [instruction(0x18, register, IS_DESCRIPTOR, 0, map.as_raw_fd()), instruction(0, 0, 0, 0, 0)]
}

/// Leaves in `R0` where the value of the key on the stack is; zero: nowhere.
fn look_up(in_map: BorrowedFd<'_>) -> Vec<Instruction> {
    let mut code = map(R1, in_map).to_vec();
    code.extend([copy(R2, STACK), add(R2, KEY as i32), call(MAP_LOOKUP)]);
    code
}

/// Leaves in `R0` where the side of the current process is; zero: it is of neither.
fn side(trees: BorrowedFd<'_>) -> Vec<Instruction> {
    const SHIFT_RIGHT: u8 = 0x77;
    // The process is in the upper half.
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

/// Skips the rest where `R0` is zero, and ends.
fn guarded(before: Vec<Instruction>, rest: Vec<Instruction>) -> Vec<Instruction> {
    let mut code = before;
    code.push(skip_if_zero(R0, rest.len() as i16));
    code.extend(rest);
    code.extend([set(R0, 0), instruction(0x95, 0, 0, 0, 0)]);
    code
}

/// On the raw tracepoint `sys_enter`: counts the call by its side and number.
pub(super) fn sys_enter(trees: BorrowedFd<'_>, counts: BorrowedFd<'_>) -> Vec<Instruction> {
    const SKIP_IF_BELOW: u8 = 0xa5;
    const MULTIPLY: u8 = 0x27;
    const ADD: u8 = 0x0f;
    // The second argument of the tracepoint is the number of the call.
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

/// On the tracepoint `sched_process_fork`, whose record has the child's number at `child`: a child is of its parent's side. Threads come
/// here too; that their numbers are in the map does no harm, because no process has the number of a thread that lives.
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
