//! The instructions of eBPF (RFC 9669).

/// One instruction in the layout of a little-endian machine.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    code: u8,
    /// Destination in the lower four bits, source in the upper four.
    registers: u8,
    pub(crate) offset: i16,
    immediate: i32,
}

impl Instruction {
    pub(crate) const fn new(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Self {
        Self { code, registers: destination | source << 4, offset, immediate }
    }
}
