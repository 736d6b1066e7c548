//! The name in a server's certificate: on Linux, MsQuic has OpenSSL verify the chain, but not the name.

use rustls_pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;

/// Whether the certificate of this encoding (DER) is for `name`.
pub fn is_for(certificate: &[u8], name: &ServerName<'_>) -> bool {
    let certificate = CertificateDer::from(certificate);
    EndEntityCert::try_from(&certificate).is_ok_and(|leaf| leaf.verify_is_valid_for_subject_name(name).is_ok())
}
