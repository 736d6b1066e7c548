//! TLS by rustls with AWS-LC, as s2n-quic itself configures it.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::aws_lc_rs::{default_provider, kx_group::X25519};

/// The cipher suites and the group that all endpoints of wirelab have, so that compared cells do not differ in them.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256],
        kx_groups: vec![X25519],
        ..default_provider()
    })
}
