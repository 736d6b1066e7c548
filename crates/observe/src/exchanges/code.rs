//! The programs of the witness. They follow each of the client's connections from request to response.
//!
//! An **exchange** begins with the first packet that leaves after a response, and ends with the last arrival that the
//! client reads before it sends again. Each connection has a record ([`Connection`]); counts and the histogram are per
//! processor ([`Slot`]).

use std::os::fd::BorrowedFd;

use super::assembler::{Assembler, Helper, Operation, R0, R1, R2, R3, R4, R6, R7, R8, R9, STACK, When};
use super::histogram::{BUCKETS, FRACTION_BITS, UNIT_BITS, VALUE_BITS};
use crate::bpf::Instruction;

/// The maps that the programs share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maps<'a> {
    /// The client's processes.
    pub processes: BorrowedFd<'a>,
    /// The servers' ports, in the order of bytes of the network.
    pub ports: BorrowedFd<'a>,
    /// [`Connection`] by the address of the kernel's socket.
    pub connections: BorrowedFd<'a>,
    /// Numbers by [`Slot`].
    pub numbers: BorrowedFd<'a>,
}

/// The record of a connection: offsets of 64-bit times of the monotonic clock.
pub(super) struct Connection;

impl Connection {
    /// When the latest packet left.
    const LEFT: i16 = 0;
    /// When the latest data arrived.
    const ARRIVED: i16 = 8;
    /// When the exchange began; 0: none is open.
    pub(super) const BEGUN: i16 = 16;
    /// When the latest data arrived that the client has read in this exchange; 0: none.
    pub(super) const ENDED: i16 = 24;
    /// When the client last read data.
    const READ: i16 = 32;
    pub(super) const BYTES: usize = 40;
}

/// The numbers, by their place in the map; the buckets of the histogram follow.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slot {
    /// The beginning of the first exchange.
    First,
    /// The time of the last reading of data.
    Last,
    /// Connections that did not fit into the map.
    Missed,
}

/// The first bucket.
pub(super) const HISTOGRAM: u32 = 3;

/// All places of the map of numbers.
pub(super) const SLOTS: u32 = HISTOGRAM + BUCKETS as u32;

/// Stack: keys and values for maps.
const SOCKET: i16 = -8;
const KEY: i16 = -16;
const NEW: i16 = -72;
/// The beginning of `struct sock_common`: addresses, hash, ports, family.
const COMMON: i16 = -96;
const COMMON_BYTES: i32 = 20;
const PEER_PORT: i16 = COMMON + 12;
const FAMILY: i16 = COMMON + 16;

/// Offset of the owner in `struct sk_buff`.
const OWNER: i32 = 24;

/// Nanoseconds. A packet that left longer ago than a call takes is a late acknowledgement, not the call's data.
const LONGEST_CALL: i32 = 1_000_000;

/// States of a TCP socket.
const CONNECTING: i32 = 2;
const CLOSED: i32 = 7;

/// Registers that survive calls.
const CONTEXT: u8 = R6;
const RECORD: u8 = R7;
const NOW: u8 = R8;
const SPARE: u8 = R9;

/// At `net_dev_queue`: a packet of a connection leaves.
pub(super) fn packet_leaves(maps: &Maps<'_>) -> Vec<Instruction> {
    let mut a = Assembler::default();
    a.load_u64(R3, R1, 0);
    a.compute(Operation::Add, R3, OWNER);
    a.set(R0, 0);
    a.store_u64(STACK, SOCKET, R0);
    a.point(R1, SOCKET);
    a.set(R2, 8);
    a.call(Helper::ReadKernel);
    a.jump_if(When::NotEqual, R0, 0, "end");
    a.load_u64(R1, STACK, SOCKET);
    a.jump_if(When::Equal, R1, 0, "end");
    stamp(&mut a, maps, Connection::LEFT);
    a.finish()
}

/// At `sk_data_ready`: data have arrived at a connection.
pub(super) fn data_arrive(maps: &Maps<'_>) -> Vec<Instruction> {
    let mut a = Assembler::default();
    a.load_u64(R1, R1, 0);
    a.store_u64(STACK, SOCKET, R1);
    stamp(&mut a, maps, Connection::ARRIVED);
    a.finish()
}

/// At `sock_send_length`: the client has handed data to the kernel.
pub(super) fn sent(maps: &Maps<'_>) -> Vec<Instruction> {
    let mut a = Assembler::default();
    a.copy(CONTEXT, R1);
    moved_bytes(&mut a);
    of_the_client(&mut a, maps);
    a.load_u64(R1, CONTEXT, 0);
    a.store_u64(STACK, SOCKET, R1);
    a.call(Helper::Now);
    a.copy(NOW, R0);
    a.look_up(maps.connections, SOCKET);
    a.jump_if(When::NotEqual, R0, 0, "known");
    enter(&mut a, maps);
    a.place("known");
    a.copy(RECORD, R0);
    // The first data after a response begin the next exchange.
    end_exchange(&mut a, maps);
    a.load_u64(R1, RECORD, Connection::BEGUN);
    a.jump_if(When::NotEqual, R1, 0, "end");
    // The data have usually left within this call. Otherwise, as while the peer's window is full, the call itself
    // counts.
    a.load_u64(SPARE, RECORD, Connection::LEFT);
    a.load_u64(R1, RECORD, Connection::READ);
    a.jump_if_than(When::AtMost, SPARE, R1, "unseen");
    a.copy(R1, NOW);
    a.compute_with(Operation::Subtract, R1, SPARE);
    a.jump_if(When::AtMost, R1, LONGEST_CALL, "seen");
    a.place("unseen");
    a.copy(SPARE, NOW);
    a.place("seen");
    a.store_u64(RECORD, Connection::BEGUN, SPARE);
    slot(&mut a, maps, Slot::First);
    a.jump_if(When::Equal, R0, 0, "end");
    a.load_u64(R1, R0, 0);
    a.jump_if(When::Equal, R1, 0, "first");
    a.jump_if_than(When::AtMost, R1, SPARE, "end");
    a.place("first");
    a.store_u64(R0, 0, SPARE);
    a.finish()
}

/// At `sock_recv_length`: the client has read data.
pub(super) fn received(maps: &Maps<'_>) -> Vec<Instruction> {
    const PEEK: i32 = 2;
    let mut a = Assembler::default();
    a.copy(CONTEXT, R1);
    moved_bytes(&mut a);
    a.load_u64(R1, CONTEXT, 16);
    a.compute(Operation::And, R1, PEEK);
    a.jump_if(When::NotEqual, R1, 0, "end");
    of_the_client(&mut a, maps);
    a.load_u64(R1, CONTEXT, 0);
    a.store_u64(STACK, SOCKET, R1);
    a.look_up(maps.connections, SOCKET);
    a.jump_if(When::Equal, R0, 0, "end");
    a.copy(RECORD, R0);
    a.call(Helper::Now);
    a.copy(NOW, R0);
    a.store_u64(RECORD, Connection::READ, NOW);
    a.load_u64(R1, RECORD, Connection::BEGUN);
    a.jump_if(When::Equal, R1, 0, "end");
    // Data that a system call found on its way has no earlier time of arrival.
    a.load_u64(SPARE, RECORD, Connection::ARRIVED);
    a.jump_if_than(When::Above, SPARE, R1, "arrived");
    a.copy(SPARE, NOW);
    a.place("arrived");
    a.store_u64(RECORD, Connection::ENDED, SPARE);
    slot(&mut a, maps, Slot::Last);
    a.jump_if(When::Equal, R0, 0, "end");
    a.store_u64(R0, 0, NOW);
    a.finish()
}

/// At `inet_sock_set_state`: a connection begins or ends.
pub(super) fn state_changes(maps: &Maps<'_>) -> Vec<Instruction> {
    let mut a = Assembler::default();
    a.load_u64(R2, R1, 0);
    a.store_u64(STACK, SOCKET, R2);
    a.load_u64(R2, R1, 16);
    a.jump_if(When::Equal, R2, CLOSED, "closed");
    a.jump_if(When::NotEqual, R2, CONNECTING, "end");
    of_the_client(&mut a, maps);
    enter(&mut a, maps);
    a.jump("end");
    a.place("closed");
    a.look_up(maps.connections, SOCKET);
    a.jump_if(When::Equal, R0, 0, "end");
    a.copy(RECORD, R0);
    end_exchange(&mut a, maps);
    a.map(R1, maps.connections);
    a.point(R2, SOCKET);
    a.call(Helper::MapDelete);
    a.finish()
}

/// Stores the time in the record of the socket on the stack.
fn stamp(a: &mut Assembler, maps: &Maps<'_>, at: i16) {
    a.look_up(maps.connections, SOCKET);
    a.jump_if(When::Equal, R0, 0, "end");
    a.copy(RECORD, R0);
    a.call(Helper::Now);
    a.store_u64(RECORD, at, R0);
}

/// Ends the program unless the operation moved data: its result, an `int`, is positive.
fn moved_bytes(a: &mut Assembler) {
    a.load_u64(R1, CONTEXT, 8);
    a.compute(Operation::ShiftLeft, R1, 32);
    a.compute(Operation::ShiftRightSigned, R1, 32);
    a.jump_if(When::SignedAtMost, R1, 0, "end");
}

/// Ends the program unless a process of the client is running.
fn of_the_client(a: &mut Assembler, maps: &Maps<'_>) {
    a.call(Helper::ProcessAndThread);
    // The process id is in the upper half.
    a.compute(Operation::ShiftRight, R0, 32);
    a.store_u32(STACK, KEY, R0);
    a.look_up(maps.processes, KEY);
    a.jump_if(When::Equal, R0, 0, "end");
}

/// Makes a record of the socket on the stack if it is connected to a server, and leaves its address in `R0`.
fn enter(a: &mut Assembler, maps: &Maps<'_>) {
    const IPV4: i32 = 2;
    const IPV6: i32 = 10;
    a.set(R0, 0);
    // The helper writes all of it; the verifier wants to see it written.
    for at in [0, 8, 16] {
        a.store_u64(STACK, COMMON + at, R0);
    }
    a.point(R1, COMMON);
    a.set(R2, COMMON_BYTES);
    a.load_u64(R3, STACK, SOCKET);
    a.call(Helper::ReadKernel);
    a.jump_if(When::NotEqual, R0, 0, "end");
    a.load_u16(R1, STACK, FAMILY);
    a.jump_if(When::Equal, R1, IPV4, "internet");
    a.jump_if(When::NotEqual, R1, IPV6, "end");
    a.place("internet");
    a.load_u16(R1, STACK, PEER_PORT);
    a.store_u32(STACK, KEY, R1);
    a.look_up(maps.ports, KEY);
    a.jump_if(When::Equal, R0, 0, "end");
    a.set(R1, 0);
    for at in (0..Connection::BYTES as i16).step_by(8) {
        a.store_u64(STACK, NEW + at, R1);
    }
    a.map(R1, maps.connections);
    a.point(R2, SOCKET);
    a.point(R3, NEW);
    a.set(R4, 0);
    a.call(Helper::MapUpdate);
    a.jump_if(When::Equal, R0, 0, "entered");
    a.set(R1, Slot::Missed as i32);
    add_one(a, maps);
    a.jump("end");
    a.place("entered");
    a.look_up(maps.connections, SOCKET);
    a.jump_if(When::Equal, R0, 0, "end");
}

/// Counts the exchange of the record if the client has read a response, and closes it.
fn end_exchange(a: &mut Assembler, maps: &Maps<'_>) {
    let still_open = a.fresh("still open");
    a.load_u64(SPARE, RECORD, Connection::ENDED);
    a.jump_if(When::Equal, SPARE, 0, &still_open);
    a.load_u64(R1, RECORD, Connection::BEGUN);
    a.jump_if(When::Equal, R1, 0, &still_open);
    a.compute_with(Operation::Subtract, SPARE, R1);
    a.set(R1, 0);
    a.store_u64(RECORD, Connection::BEGUN, R1);
    a.store_u64(RECORD, Connection::ENDED, R1);
    bucket(a, SPARE);
    a.compute(Operation::Add, R1, HISTOGRAM as i32);
    add_one(a, maps);
    a.place(&still_open);
}

/// Leaves the number of the bucket of a duration in `R1`. See [`super::histogram::bucket`].
fn bucket(a: &mut Assembler, duration: u8) {
    let (bounded, done) = (a.fresh("bounded"), a.fresh("bucket"));
    a.copy(R1, duration);
    a.compute(Operation::ShiftRight, R1, UNIT_BITS as i32);
    // The largest value is the last of its bucket, so it has all bits set.
    a.set(R2, 1);
    a.compute(Operation::ShiftLeft, R2, VALUE_BITS as i32);
    a.compute(Operation::Add, R2, -1);
    a.jump_if_than(When::AtMost, R1, R2, &bounded);
    a.copy(R1, R2);
    a.place(&bounded);
    a.jump_if(When::AtMost, R1, (2 << FRACTION_BITS) - 1, &done);
    // R2: the position of the highest bit.
    a.set(R2, 0);
    a.copy(R3, R1);
    for bits in [32, 16, 8, 4, 2, 1] {
        let below = a.fresh("below");
        a.copy(R4, R3);
        a.compute(Operation::ShiftRight, R4, bits);
        a.jump_if(When::Equal, R4, 0, &below);
        a.copy(R3, R4);
        a.compute(Operation::Add, R2, bits);
        a.place(&below);
    }
    // The value's leading bits, and in front of them the number of the octave.
    a.compute(Operation::Add, R2, -(FRACTION_BITS as i32));
    a.compute_with(Operation::ShiftRight, R1, R2);
    a.compute(Operation::ShiftLeft, R2, FRACTION_BITS as i32);
    a.compute_with(Operation::Add, R1, R2);
    a.place(&done);
}

/// Adds one to the number whose place is in `R1`.
fn add_one(a: &mut Assembler, maps: &Maps<'_>) {
    let none = a.fresh("no number");
    a.store_u32(STACK, KEY, R1);
    a.look_up(maps.numbers, KEY);
    a.jump_if(When::Equal, R0, 0, &none);
    a.load_u64(R1, R0, 0);
    a.compute(Operation::Add, R1, 1);
    a.store_u64(R0, 0, R1);
    a.place(&none);
}

/// Leaves the address of a number in `R0`.
fn slot(a: &mut Assembler, maps: &Maps<'_>, slot: Slot) {
    a.set(R1, slot as i32);
    a.store_u32(STACK, KEY, R1);
    a.look_up(maps.numbers, KEY);
}
