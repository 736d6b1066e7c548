//! BoringSSL's configurations by the spec.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use boring::ssl::{SslContextBuilder, SslFiletype, SslMethod, SslOptions};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientTls, ServerTls};
use wirelab_endpoint::program::Refusal;

/// The one group of every endpoint of wirelab, so that compared cells do not differ in it.
const GROUP: &str = "X25519";

/// A client's configuration, with its trust anchors.
///
/// # Errors
///
/// [`Refusal`] where the trust anchor cannot be read.
pub fn client_context(tls: &ClientTls) -> Result<SslContextBuilder, Refusal> {
    let mut context = context()?;
    match &tls.trust_anchor {
        Some(anchor) => context
            .set_ca_file(anchor)
            .map_err(|error| Refusal::failed(format!("trusting the certificate in {}: {error}", anchor.display())))?,
        None => context
            .set_default_verify_paths()
            .map_err(|error| Refusal::failed(format!("trusting the system's authorities: {error}")))?,
    }
    Ok(context)
}

/// A server's configuration: its certificate, its key, and whether it gives tickets.
///
/// # Errors
///
/// [`Refusal`] where the certificate or the key cannot be used.
pub fn server_context(tls: &ServerTls) -> Result<SslContextBuilder, Refusal> {
    let using = |what: &str, path: &Path, error: &dyn Display| {
        Refusal::failed(format!("using the {what} {}: {error}", path.display()))
    };
    let mut context = context()?;
    let certificate = context.set_certificate_chain_file(&tls.certificate);
    certificate.map_err(|error| using("certificate", &tls.certificate, &error))?;
    let key = context.set_private_key_file(&tls.key, SslFiletype::PEM);
    key.map_err(|error| using("key", &tls.key, &error))?;
    if !tls.resumption && !tls.early_data {
        context.set_options(SslOptions::NO_TICKET);
    }
    Ok(context)
}

/// A configuration without a certificate and without trust anchors.
///
/// # Errors
///
/// [`Refusal`] where BoringSSL gives none.
pub fn context() -> Result<SslContextBuilder, Refusal> {
    let failed = |error: &dyn Display| Refusal::failed(format!("setting up TLS: {error}"));
    let mut context = SslContextBuilder::new(SslMethod::tls()).map_err(|error| failed(&error))?;
    context.set_curves_list(GROUP).map_err(|error| failed(&error))?;
    Ok(context)
}

/// A spec of QUIC without TLS.
#[must_use]
pub fn no_tls(protocol: Protocol) -> Refusal {
    Refusal::failed(format!("the protocol `{protocol}` needs the section `tls` in the spec"))
}

/// Opens the file to which TLS secrets are appended.
///
/// # Errors
///
/// Those of the file system.
pub fn open_key_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
