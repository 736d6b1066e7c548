//! A packet socket whose frames arrive in memory that the kernel and this process share (packet(7), `TPACKET_V3`; the
//! kernel's Documentation/networking/packet_mmap.rst). Each block of frames belongs to the kernel or to this process at
//! a time.

use std::ffi::CString;
use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{sockaddr_ll, tpacket_block_desc, tpacket_hdr_v1, tpacket_req3, tpacket_stats_v3, tpacket3_hdr};

/// Bytes of a block: more than the longest frame, which has 64 KiB.
const BLOCK: usize = 1 << 18;

/// Blocks of the ring for headers: 8 MiB, 40 000 frames; and for whole frames: 64 MiB.
const BLOCKS_FOR_HEADERS: usize = 32;
const BLOCKS_FOR_FRAMES: usize = 256;

/// Captured bytes of a frame if headers suffice: two sets of Ethernet, IP and UDP or TCP, and VXLAN.
const HEADERS: u32 = 128;

/// Milliseconds after which the kernel hands over a partly filled block.
const RETIRE: u32 = 50;

/// Bytes of the segmentation header before each frame, and offsets in it: `struct virtio_net_hdr` of
/// linux/virtio_net.h.
const SEGMENTATION: usize = 10;
const SEGMENTATION_KIND: usize = 1;
const SEGMENTATION_SIZE: usize = 4;

/// All protocols, in network byte order as the socket expects.
const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

/// The socket and its ring.
#[derive(Debug)]
pub(crate) struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    blocks: usize,
    /// The block that the kernel hands over next.
    next: usize,
}

// SAFETY: the memory belongs to this value alone (shared with the kernel only) and is not tied to a thread.
unsafe impl Send for Ring {}

/// A frame in the ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Captured<'a> {
    /// The kernel's time stamp in nanoseconds of Unix time.
    pub at_ns: u64,
    /// The captured part.
    pub bytes: &'a [u8],
    /// Length of the whole frame.
    pub length: u32,
    /// Payload bytes of each segment; `None`: no super-packet.
    pub segment: Option<u16>,
    /// Whether this host sent the frame.
    pub is_sent: bool,
}

impl Ring {
    /// Captures at an interface in the network namespace of this thread; `whole`: entire frames instead of headers.
    pub(crate) fn open(interface: &str, whole: bool) -> io::Result<Self> {
        let name = CString::new(interface)?;
        // SAFETY: the name ends with a zero byte and lives through the call.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // With protocol 0 nothing arrives before the socket is bound.
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened and is owned by nothing else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as libc::c_int))?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1_i32)?;
        if !whole {
            cut(&socket, HEADERS)?;
        }
        let mut blocks = if whole { BLOCKS_FOR_FRAMES } else { BLOCKS_FOR_HEADERS };
        // Halves the ring as long as the kernel lacks memory for it.
        while let Err(error) = set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request(blocks)) {
            if error.raw_os_error() != Some(libc::ENOMEM) || blocks <= 4 {
                return Err(error);
            }
            blocks /= 2;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the socket's own ring, of exactly its size.
        let memory =
            unsafe { libc::mmap(null_mut(), BLOCK * blocks, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("the ring was mapped nowhere"))?;
        let ring = Self { socket, memory, blocks, next: 0 };
        // SAFETY: `sockaddr_ll` is plain data, for which all zeroes is a value.
        let mut address: sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ALL;
        address.sll_ifindex = index.cast_signed();
        // SAFETY: the address lives through the call, and its exact size is passed.
        let status = unsafe {
            libc::bind(ring.socket.as_raw_fd(), (&raw const address).cast(), size_of::<sockaddr_ll>() as u32)
        };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(ring) }
    }

    /// Passes every frame that the kernel has handed over to `each`, in order, and returns the blocks to the kernel.
    pub(crate) fn read(&mut self, mut each: impl FnMut(Captured<'_>)) {
        // At most one round, so that orders are not delayed.
        for _ in 0..self.blocks {
            // SAFETY: the block lies within the mapping, which is as long as the ring.
            let block = unsafe { self.memory.add(self.next * BLOCK) };
            let status = offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, block_status);
            // SAFETY: the field lies within the block and is aligned, as blocks are; both sides change it as a whole.
            let status = unsafe { AtomicU32::from_ptr(block.add(status).cast().as_ptr()) };
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return;
            }
            // SAFETY: the whole block is mapped, and the kernel does not write to it until the status is given back.
            frames(unsafe { std::slice::from_raw_parts(block.as_ptr(), BLOCK) }, &mut each);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.blocks;
        }
    }

    /// Frames that were dropped because the ring was full, since the last call.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        let mut statistics = tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = size_of::<tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the value and its length live through the call, and the length is the value's.
        let status = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(statistics.tp_drops.into()) }
    }

    /// The socket's pending error, for example that its interface went down; reading clears it.
    pub(crate) fn error(&self) -> Option<io::Error> {
        rustix::net::sockopt::socket_error(&self.socket)
            .map_or_else(|error| Some(error.into()), |pending| pending.err().map(Into::into))
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly the mapped range, and no reference to it is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCK * self.blocks) };
    }
}

fn request(blocks: usize) -> tpacket_req3 {
    // Frames have variable lengths in `TPACKET_V3`; the kernel checks the frame size nevertheless.
    let frame = 2048;
    tpacket_req3 {
        tp_block_size: BLOCK as u32,
        tp_block_nr: blocks as u32,
        tp_frame_size: frame,
        tp_frame_nr: (BLOCK * blocks) as u32 / frame,
        tp_retire_blk_tov: RETIRE,
        tp_sizeof_priv: 0,
        tp_feature_req_word: 0,
    }
}

/// Truncates captured frames: a filter of one instruction, which accepts `bytes`.
fn cut(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    let mut program = [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: bytes }];
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_ATTACH_FILTER,
        &libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() },
    )
}

fn set<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value lives through the call, with what it points to, and its exact size is passed.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The frames of a block.
fn frames(block: &[u8], each: &mut impl FnMut(Captured<'_>)) {
    let head = offset_of!(tpacket_block_desc, hdr);
    let count = word(block, head + offset_of!(tpacket_hdr_v1, num_pkts));
    let mut at = word(block, head + offset_of!(tpacket_hdr_v1, offset_to_first_pkt)) as usize;
    for _ in 0..count {
        let frame = &block[at..];
        each(captured(frame));
        at += word(frame, offset_of!(tpacket3_hdr, tp_next_offset)) as usize;
    }
}

/// The frame at the start of these bytes: header, address, segmentation header, then data.
fn captured(frame: &[u8]) -> Captured<'_> {
    let field = |at| word(frame, at);
    let start = usize::from(half(frame, offset_of!(tpacket3_hdr, tp_mac)));
    let captured = field(offset_of!(tpacket3_hdr, tp_snaplen)) as usize;
    let segmentation = &frame[start - SEGMENTATION..start];
    let kind = frame
        [size_of::<tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT) + offset_of!(sockaddr_ll, sll_pkttype)];
    let seconds = u64::from(field(offset_of!(tpacket3_hdr, tp_sec)));
    Captured {
        at_ns: seconds * 1_000_000_000 + u64::from(field(offset_of!(tpacket3_hdr, tp_nsec))),
        bytes: &frame[start..start + captured],
        length: field(offset_of!(tpacket3_hdr, tp_len)),
        segment: (segmentation[SEGMENTATION_KIND] != 0).then(|| half(segmentation, SEGMENTATION_SIZE)),
        is_sent: kind == libc::PACKET_OUTGOING,
    }
}

/// A number of four bytes.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A number of two bytes.
fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}
