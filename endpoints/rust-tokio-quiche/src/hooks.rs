//! TLS by the spec: tokio-quiche asks a hook for BoringSSL's configuration, a server's once, a client's for each
//! connection.

use std::sync::Arc;

use boring::ssl::{SslContextBuilder, SslVerifyMode};
use boring::x509::store::X509Store;
use tokio::sync::watch;
use tokio_quiche::quic::ConnectionHook;
use tokio_quiche::settings::TlsCertificatePaths;
use wirelab_contract::spec::{ClientTls, ServerTls};
use wirelab_endpoint::program::Refusal;
use wirelab_quiche::{client_context, context, server_context};

/// The trust of a client, read once.
#[derive(Clone)]
pub struct Trust {
    store: Arc<X509Store>,
    verify: bool,
}

impl Trust {
    /// By the spec.
    pub fn new(tls: &ClientTls) -> Result<Self, Refusal> {
        let store = client_context(tls)?.build().cert_store().to_owned();
        Ok(Self { store: Arc::new(store), verify: tls.verify })
    }

    /// The hook of one connection.
    pub fn hook(&self) -> Arc<ClientHook> {
        Arc::new(ClientHook { trust: self.clone(), rejection: Arc::default() })
    }
}

/// The hook of one connection of a client.
pub struct ClientHook {
    trust: Trust,
    rejection: Arc<watch::Sender<Option<String>>>,
}

impl ClientHook {
    /// Returns the reason when the server's certificate was not accepted, which is all that can be learned of a
    /// handshake that failed.
    pub async fn rejected(&self) -> String {
        let mut rejection = self.rejection.subscribe();
        let reason = rejection.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
    }
}

impl ConnectionHook for ClientHook {
    fn create_custom_ssl_context_builder(&self, _: TlsCertificatePaths<'_>) -> Option<SslContextBuilder> {
        // That there can be one was proven when the trust was read.
        let mut context = context().ok()?;
        context.set_cert_store_ref(&self.trust.store);
        if self.trust.verify {
            let rejection = Arc::clone(&self.rejection);
            context.set_verify_callback(SslVerifyMode::PEER, move |accepted, certificates| {
                if !accepted {
                    let reason = certificates.verify_result().err().map_or("not valid", |error| error.error_string());
                    rejection.send_replace(Some(reason.to_owned()));
                }
                accepted
            });
        }
        Some(context)
    }
}

pub struct ServerHook(ServerTls);

impl ServerHook {
    /// By the spec. Tries every step that can fail.
    pub fn new(tls: &ServerTls) -> Result<Self, Refusal> {
        server_context(tls).map(|_| Self(tls.clone()))
    }
}

impl ConnectionHook for ServerHook {
    fn create_custom_ssl_context_builder(&self, _: TlsCertificatePaths<'_>) -> Option<SslContextBuilder> {
        server_context(&self.0).ok()
    }
}
